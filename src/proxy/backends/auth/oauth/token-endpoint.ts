/**
 * Calls a token endpoint (RFC 6749 §3.2). Policies of its backend apply to the call. Redirects are failures, bodies of
 * errors are never repeated, and a token that could break out of a header is not taken.
 */
import type { OAuthClient, TokenEndpoint } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { OAuthClientMethod } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { randomUUID } from "node:crypto";
import { HeaderList } from "../../../../lib/header-list.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { Callout, CalloutAnswer } from "../../../callouts/callout.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { BlockDeps } from "../auth-kind.ts";
import { createJwtSigner, type JwtSigner } from "../shared/jwt-signer.ts";
import { parseAnswer } from "../shared/parse-answer.ts";

export const TOKEN_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 1_048_576;
const ASSERTION_SECONDS = 300;
const BEHIND_SECONDS = 10;
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

export type Form = (readonly [name: string, value: string])[];

/** An answer with status 2xx, checked as far as all uses agree. */
export interface TokenAnswer {
  readonly accessToken: string;
  readonly tokenType: string | undefined;
  readonly issuedType: string | undefined;
  /** undefined when the answer does not say. */
  readonly lifetimeMs: number | undefined;
}

/** @throws ProxyError request_invalid when the server refuses the client's token, else credential_unavailable */
export type AskForToken = (form: Form, caller: AuthCaller) => Promise<TokenAnswer>;

export function compileEndpoint(spec: TokenEndpoint | undefined, { callouts }: BlockDeps): AskForToken {
  const { service, path = "", client } = spec ?? {};
  let callout: Callout | undefined;
  const prove = compileClient(client);
  return async (form, caller) => {
    // Services are opened when they are first needed, because callouts are created after backends.
    callout ??= callouts().open(service, "Oidc", TOKEN_TIMEOUT_MS);
    if (callout.invalidReason !== undefined) throw unusable(callout.invalidReason);
    const headers = new HeaderList(["content-type", "application/x-www-form-urlencoded", "accept", "application/json"]);
    const proof = await prove(headers);
    const body = Buffer.from(new URLSearchParams([...form, ...proof].map(([name, value]) => [name, value])).toString());
    const { trace, cdnLoop } = caller;
    const own = { onAbort: (): void => undefined, trace, cdnLoop };
    const request = { method: "POST", path: path || callout.path || "/", authority: undefined, headers, body };
    return readToken(await callout.http(request, own));
  };
}

/** @returns a function that adds what proves who the gateway is */
function compileClient(client: OAuthClient | undefined): (headers: HeaderList) => Form | Promise<Form> {
  if (client === undefined) return () => [];
  const { id, secret, method, key, assertionAudience, assertionHeaderJson } = client;
  switch (method) {
    case OAuthClientMethod.OAUTH_CLIENT_METHOD_BASIC: {
      const basic = Buffer.from(`${encodeForm(id)}:${encodeForm(secret)}`).toString("base64");
      return (headers) => {
        headers.set("authorization", `Basic ${basic}`);
        return [];
      };
    }
    case OAuthClientMethod.OAUTH_CLIENT_METHOD_ASSERTION: {
      if (key === undefined) throw unusable("an assertion needs a key");
      const header = assertionHeaderJson === "" ? {} : (parseAnswer(Buffer.from(assertionHeaderJson)) ?? {});
      const signer = createJwtSigner(key, header);
      return async () => [
        ["client_id", id],
        ["client_assertion_type", ASSERTION_TYPE],
        ["client_assertion", await signAssertion(signer, id, assertionAudience)],
      ];
    }
    default:
      return () => [["client_id", id], ...(secret === "" ? [] : ([["client_secret", secret]] as const))];
  }
}

/** Encodes as a form does, which the Basic scheme asks for here (RFC 6749 §2.3.1). */
function encodeForm(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

function signAssertion(signer: JwtSigner, id: string, audience: string): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const times = { iat: now - BEHIND_SECONDS, nbf: now - BEHIND_SECONDS, exp: now + ASSERTION_SECONDS };
  return signer.sign(JSON.stringify({ iss: id, sub: id, aud: audience, jti: randomUUID(), ...times }));
}

function readToken({ status, headers, body }: CalloutAnswer): TokenAnswer {
  if (status >= 400 && status < 500 && status !== 401 && status !== 403)
    throw new ProxyError("request_invalid", { detail: `the token endpoint answered with status ${status}` });
  if (status < 200 || status > 299 || status === 204) throw unusable(`it answered with status ${status}`);
  if (body.length > MAX_ANSWER_BYTES) throw unusable(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`);
  const isJson = /[/+]json\b/i.test(headers.get("content-type") ?? "");
  const answer = isJson ? parseAnswer(body) : undefined;
  if (answer === undefined) throw unusable("its answer is not a JSON object");
  const { access_token: accessToken, token_type: tokenType, issued_token_type: issuedType } = answer;
  if (typeof accessToken !== "string" || !/^[\x21-\x7e]+$/.test(accessToken)) throw unusable("it gave no usable token");
  return {
    accessToken,
    tokenType: typeof tokenType === "string" ? tokenType : undefined,
    issuedType: typeof issuedType === "string" ? issuedType : undefined,
    lifetimeMs: lifetimeOf(answer["expires_in"]),
  };
}

/** @param value a number, or digits in a string as some servers write them */
function lifetimeOf(value: unknown): number | undefined {
  const seconds = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  return typeof seconds === "number" && seconds >= 0 ? seconds * 1000 : undefined;
}

export function unusable(reason: string): ProxyError {
  return new ProxyError("credential_unavailable", { detail: `the token endpoint cannot be used: ${reason}` });
}
