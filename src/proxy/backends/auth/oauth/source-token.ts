/** Reads the tokens of a request that are exchanged for others. */
import type { SourceToken } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { deepEqual } from "../../../../lib/deep-equal.ts";
import { isRecord } from "../../../../lib/is-record.ts";
import { ProxyError } from "../../../exchange/errors.ts";
import type { Exchange, RoutedExchange } from "../../../exchange/exchange.ts";
import { compileLocation } from "../../../policies/shared/credential-location.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { BlockDeps } from "../auth-kind.ts";
import { parseAnswer } from "../shared/parse-answer.ts";
import { findVerified } from "../shared/verified-token.ts";

export interface SourceReader {
  /** @throws ProxyError request_invalid when the request has no such token, or several that differ */
  read(exchange: RoutedExchange): string;
  /** Removes the token from a request that leaves. */
  strip(request: Pick<Exchange, "requestHeaders" | "target">): void;
}

/** @param prefersVerified whether a verified token goes before that of the header Authorization */
export function compileSource(
  spec: SourceToken | undefined,
  what: string,
  prefersVerified: boolean,
  { expression }: BlockDeps,
): SourceReader {
  const source = spec?.source;
  const location = compileLocation(source, { expression });
  return {
    read(exchange) {
      const verified = findVerified(exchange);
      const found = location.read(exchange);
      const here = typeof found === "string" && found.trim() !== "" ? found : undefined;
      if (typeof found === "symbol") throw missing(`there are several tokens for ${what}`);
      // A policy has removed the token that it verified; the source reads the request as it was before.
      const isPlaceOfVerified = verified !== undefined && deepEqual(verified.token.location, source ?? AUTHORIZATION);
      const stripped =
        verified !== undefined && (source === undefined || isPlaceOfVerified) ? verified.token.reveal() : undefined;
      const token = prefersVerified || isPlaceOfVerified ? (stripped ?? here) : (here ?? stripped);
      if (token === undefined) throw missing(`there is no token for ${what}`);
      return token;
    },
    strip: (request) => location.strip(request),
  };
}

const AUTHORIZATION = { location: { case: "header", value: { name: "Authorization", prefix: "Bearer " } } };

function missing(detail: string): ProxyError {
  return new ProxyError("request_invalid", { detail });
}

/** The exchange of a token needs a request that brings it. @throws ProxyError credential_unavailable */
export function requireRequest(caller: AuthCaller): RoutedExchange {
  // Only a request has headers, and then it is the whole exchange.
  if (caller.requestHeaders !== undefined) return caller as RoutedExchange;
  throw new ProxyError("credential_unavailable", { detail: "a call of the gateway itself has no token to exchange" });
}

/** Returns the claims of a token: verified ones where it is the verified token, else whatever it says. */
export function claimsOf(token: string, caller: AuthCaller): Readonly<Record<string, unknown>> | undefined {
  const verified = findVerified(caller);
  return verified?.token.reveal() === token ? verified.claims : decodeClaims(token);
}

export function decodeClaims(token: string): Readonly<Record<string, unknown>> | undefined {
  const [, payload, signature] = token.split(".");
  return payload === undefined || signature === undefined ? undefined : parseAnswer(Buffer.from(payload, "base64url"));
}

/** Tells whether the claim `may_act` of the subject allows the actor (RFC 8693 §4.4). */
export function mayAct(
  subject: Readonly<Record<string, unknown>> | undefined,
  actor: Readonly<Record<string, unknown>> | undefined,
): boolean {
  const allowed = subject?.["may_act"];
  if (!isRecord(allowed) || actor === undefined) return false;
  const members = Object.entries(allowed);
  return members.length > 0 && members.every(([name, wanted]) => isMet(wanted, actor[name]));
}

function isMet(wanted: unknown, has: unknown): boolean {
  if (has === undefined) return false;
  if (deepEqual(wanted, has)) return true;
  if (Array.isArray(has) && has.some((each) => deepEqual(each, wanted))) return true;
  return Array.isArray(wanted) && wanted.some((each) => deepEqual(each, has));
}
