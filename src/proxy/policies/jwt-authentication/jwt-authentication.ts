/**
 * Authenticates the client by a JSON Web Token. An accepted token is removed from the request unless `preserveToken` is
 * set, and its claims become the root "jwt" of expressions. Without a usable provider every token is refused.
 */
import { AuthenticationMode, type JwtAuthentication } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Secret } from "../../../cel/values.ts";
import type { Exchange, MaybePromise, Next, Reply } from "../../exchange/exchange.ts";
import { BEARER_INVALID, BEARER_MISSING, sendChallenge } from "../shared/challenge.ts";
import { AMBIGUOUS, compileLocation } from "../shared/credential-location.ts";
import { compileProvider } from "./keys.ts";
import { createJwtVerifier, type Verification } from "./verifier.ts";
import type { Policy } from "../policy.ts";

export const jwtAuthentication: Policy<JwtAuthentication> = {
  compile({ mode, providers, location, preserveToken }, deps) {
    const place = compileLocation(location, deps);
    const verifier = createJwtVerifier(providers.map((provider) => compileProvider(provider, deps)));
    const missingPasses = mode === AuthenticationMode.OPTIONAL || mode === AuthenticationMode.PERMISSIVE;
    const invalidPasses = mode === AuthenticationMode.PERMISSIVE;

    function accept(exchange: Exchange, token: string, claims: object, next: Next): MaybePromise<Reply> {
      if (!preserveToken) place.strip(exchange);
      exchange.setRoot("jwt", { ...claims, rawToken: new Secret(token) });
      return next();
    }

    function refuse(exchange: Exchange, refused: Refused, next: Next): MaybePromise<Reply> {
      return invalidPasses ? next() : sendChallenge(exchange, place, BEARER_INVALID, refused);
    }

    return function jwtAuthentication(exchange, next) {
      const token = place.read(exchange);
      if (token === undefined) {
        if (missingPasses) return next();
        return sendChallenge(exchange, place, BEARER_MISSING, { code: "jwt_missing" });
      }
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
  },
};

type Refused = Extract<Verification, { code: unknown }>;
