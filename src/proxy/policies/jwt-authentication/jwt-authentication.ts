/**
 * Authenticates the client by a JSON Web Token. An accepted token is removed from the request unless `preserveToken` is
 * set, and its claims become the root "jwt" of expressions. Without a usable provider every token is refused.
 *
 * With `mcp` set, clients that have no token find out where to get one: the challenge names the metadata, and requests
 * for it are answered here, before any token is looked for.
 */
import { AuthenticationMode, type JwtAuthentication } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ProxyErrorCode } from "../../exchange/errors.ts";
import type { Exchange, MaybePromise, Next, Reply } from "../../exchange/exchange.ts";
import { BEARER_INVALID, BEARER_MISSING, sendChallenge } from "../shared/challenge.ts";
import { AMBIGUOUS, compileLocation } from "../shared/credential-location.ts";
import { VerifiedToken } from "../shared/verified-token.ts";
import { compileProvider } from "./keys.ts";
import { createJwtVerifier } from "./verifier.ts";
import { compileProtectedResource } from "../../mcp/metadata/protected-resource.ts";
import type { IssuerDeps } from "../../mcp/metadata/issuer.ts";
import type { Middleware, Policy, PolicyDeps } from "../policy.ts";

export const jwtAuthentication: Policy<JwtAuthentication> = {
  compile: compileJwtAuthentication,
};

/** The part of PolicyDeps that is needed; an MCP backend has these too. */
export type JwtAuthenticationDeps = Pick<PolicyDeps, "expression" | "owner" | "log"> & IssuerDeps;

export function compileJwtAuthentication(
  { mode, providers, location, preserveToken, mcp }: JwtAuthentication,
  deps: JwtAuthenticationDeps,
): Middleware {
  const place = compileLocation(location, deps);
  const verifier = createJwtVerifier(providers.map((provider) => compileProvider(provider, deps)));
  const missingPasses = mode === AuthenticationMode.OPTIONAL || mode === AuthenticationMode.PERMISSIVE;
  const resource = mcp === undefined ? undefined : compileProtectedResource(mcp, deps);
  const invalidPasses = mode === AuthenticationMode.PERMISSIVE;

  function accept(exchange: Exchange, token: string, claims: object, next: Next): MaybePromise<Reply> {
    if (!preserveToken) place.strip(exchange);
    exchange.setRoot("jwt", { ...claims, rawToken: new VerifiedToken(token, location) });
    return next();
  }

  function refuse(exchange: Exchange, refused: Refused, next: Next): MaybePromise<Reply> {
    return invalidPasses ? next() : challenge(exchange, refused);
  }

  function challenge(exchange: Exchange, refused: Refused): never {
    const isInvalid = refused.code !== "jwt_missing";
    if (resource === undefined)
      return sendChallenge(exchange, place, isInvalid ? BEARER_INVALID : BEARER_MISSING, refused);
    return sendChallenge(exchange, place, resource.challenge(exchange, isInvalid), { ...refused, json: UNAUTHORIZED });
  }

  return function jwtAuthentication(exchange, next) {
    const answer = resource?.answer(exchange);
    if (answer !== undefined) return answer;
    const token = place.read(exchange);
    if (token === undefined) return missingPasses ? next() : challenge(exchange, { code: "jwt_missing" });
    if (token === AMBIGUOUS) return refuse(exchange, { code: "jwt_invalid", detail: "several tokens" }, next);
    const claims = verifier.remembered(token);
    if (claims !== undefined) return accept(exchange, token, claims, next);
    return verifier
      .verifyToken(token)
      .then((verification) =>
        "claims" in verification
          ? accept(exchange, token, verification.claims, next)
          : refuse(exchange, verification, next),
      );
  };
}

/** Why a request is refused. */
interface Refused {
  readonly code: ProxyErrorCode;
  readonly detail?: string;
}

const UNAUTHORIZED = '{"error":"unauthorized","error_description":"JWT token required"}';
