/**
 * The kind `crossAppAccess`: the identity provider gives an assertion for the client's token (RFC 8693, ID-JAG), and the
 * other application's authorization server gives a token for the assertion (RFC 7523).
 */
import { create } from "@bufbuild/protobuf";
import { CredentialSchema, type CrossAppAccess } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { AuthKind } from "../auth-kind.ts";
import { placeCredential } from "../shared/place-credential.ts";
import { openTokens } from "./exchanged-tokens.ts";
import { compileSource, requireRequest } from "./source-token.ts";
import {
  compileEndpoint,
  TOKEN_TIMEOUT_MS,
  unusable,
  type AskForToken,
  type Form,
  type TokenAnswer,
} from "./token-endpoint.ts";
import { JWT_BEARER, TOKEN_EXCHANGE } from "./token-exchange.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

export const crossAppAccess: AuthKind<"crossAppAccess"> = {
  compile(spec, deps) {
    const provider = compileEndpoint(spec.identityProvider, deps);
    const server = compileEndpoint(spec.resourceServer, deps);
    const tokens = openTokens("crossAppAccess", spec.cache, deps, 2 * TOKEN_TIMEOUT_MS);
    const source = compileSource(spec.subject, "the subject", false, deps);
    return {
      place({ caller }, headers, path) {
        const subject = source.read(requireRequest(caller));
        const token = tokens.get([], subject, caller, async () =>
          askServer(server, await askProvider(provider, spec, subject, caller), spec, caller),
        );
        const finish = (value: string): string => {
          const request = { requestHeaders: headers, target: path };
          source.strip(request);
          return placeCredential(create(CredentialSchema, { value }), headers, request.target);
        };
        return typeof token === "string" ? finish(token) : token.then(finish);
      },
    };
  },
};

async function askProvider(
  ask: AskForToken,
  spec: CrossAppAccess,
  subject: string,
  caller: AuthCaller,
): Promise<string> {
  const form: Form = [
    ["grant_type", TOKEN_EXCHANGE],
    ["requested_token_type", ID_JAG],
    ["subject_token", subject],
    ["subject_token_type", spec.subject?.type ?? ""],
    ["audience", spec.audience],
    ...spec.resources.map((resource) => ["resource", resource] as const),
  ];
  if (spec.assertionScope !== "") form.push(["scope", spec.assertionScope]);
  const { accessToken, issuedType, tokenType = "N_A" } = await ask(form, caller);
  if (issuedType !== ID_JAG || tokenType !== "N_A") throw unusable("the identity provider gave no assertion");
  return accessToken;
}

/** The client did not cause an error of this step, so it is not told of one. */
async function askServer(
  ask: AskForToken,
  assertion: string,
  spec: CrossAppAccess,
  caller: AuthCaller,
): Promise<TokenAnswer> {
  const form: Form = [
    ["grant_type", JWT_BEARER],
    ["assertion", assertion],
  ];
  if (spec.tokenScope !== "") form.push(["scope", spec.tokenScope]);
  try {
    const answer = await ask(form, caller);
    if (answer.tokenType?.toLowerCase() !== "bearer") throw unusable("its token is not of the type Bearer");
    return answer;
  } catch (error) {
    throw error instanceof ProxyError && error.status < 500 ? unusable(error.detail ?? error.code) : error;
  }
}
