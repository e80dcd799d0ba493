/**
 * Verifies JSON Web Tokens (RFC 7519, RFC 8725). Signatures are checked off the event loop. Accepted tokens stay in an
 * LRU cache under their digest until they expire, so the next request with the same token costs a look-up; concurrent
 * requests with the same token share one verification (singleflight).
 */
import { hash } from "node:crypto";

import { jwtVerify, type JWTPayload } from "jose";

import { messageOf } from "../../../lib/errors.ts";
import { parseJsonObject } from "../../../lib/parse-json-object.ts";
import { RecentMap } from "../../../lib/recent-map.ts";
import type { ProxyErrorCode } from "../../exchange/errors.ts";
import type { TrustedKey, TrustedProvider } from "./keys.ts";

type Verification = { readonly claims: JWTPayload } | { readonly code: ProxyErrorCode; readonly detail: string };

export interface JwtVerifier {
  /** @returns the claims of a token that was accepted before and has not expired */
  remembered(token: string): JWTPayload | undefined;
  /** Never rejects. */
  verifyToken(token: string): Promise<Verification>;
}

const LEEWAY_SECONDS = 60;
/** Larger tokens are refused before anything is decoded. */
const MAX_TOKEN_LENGTH = 16_384;
const MAX_REMEMBERED = 2048;

interface Remembered {
  readonly claims: JWTPayload;
  readonly untilMs: number;
}

interface Candidate {
  readonly provider: TrustedProvider;
  readonly trusted: TrustedKey;
}

export function createJwtVerifier(providers: readonly TrustedProvider[]): JwtVerifier {
  const good = new RecentMap<string, Remembered>(MAX_REMEMBERED);
  const asked = new Map<string, Promise<Verification>>();

  async function examine(token: string, digest: string): Promise<Verification> {
    const found = candidatesOf(token, providers);
    if ("code" in found) return found;
    let detail = "";
    for (const candidate of found.candidates) {
      try {
        const claims = await verify(token, candidate);
        const untilMs = claims.exp === undefined ? Infinity : (claims.exp + LEEWAY_SECONDS) * 1000;
        good.set(digest, { claims, untilMs });
        return { claims };
      } catch (error) {
        detail = messageOf(error);
      }
    }
    return { code: "jwt_invalid", detail };
  }

  return {
    remembered(token) {
      if (token.length > MAX_TOKEN_LENGTH) return undefined;
      const found = good.get(digestOf(token));
      return found !== undefined && Date.now() < found.untilMs ? found.claims : undefined;
    },
    verifyToken(token) {
      if (token.length > MAX_TOKEN_LENGTH)
        return Promise.resolve({ code: "jwt_invalid", detail: "the token is too long" });
      const digest = digestOf(token);
      // A client often sends many requests at once: verify their common token once.
      let verification = asked.get(digest);
      if (verification === undefined) {
        verification = examine(token, digest).finally(() => asked.delete(digest));
        asked.set(digest, verification);
      }
      return verification;
    },
  };
}

function digestOf(token: string): string {
  return hash("sha256", token, "base64");
}

/** Returns the keys that may have signed the token, by its unverified claims: the issuer and the key ID. */
function candidatesOf(
  token: string,
  providers: readonly TrustedProvider[],
): { readonly candidates: readonly Candidate[] } | Extract<Verification, { code: unknown }> {
  const [head, body, ...rest] = token.split(".");
  const header = parseSegment(head);
  if (header === undefined || rest.length !== 1) return { code: "jwt_header_malformed", detail: "" };
  const { kid } = header;
  const issuer = parseSegment(body)?.["iss"];
  const isKnown = providers.some((provider) => provider.issuer === issuer);
  const stranger = isKnown ? "" : `no provider has the issuer ${quoted(issuer)}`;
  if (kid === undefined) return { code: "jwt_key_unnamed", detail: stranger };
  if (typeof kid !== "string") return { code: "jwt_header_malformed", detail: "kid is not a string" };
  const detail = isKnown ? `the issuer ${quoted(issuer)} has no key named ${quoted(kid)}` : stranger;
  const named = providers.flatMap((provider) =>
    (provider.keys.get(kid) ?? []).map((trusted): Candidate => ({ provider, trusted })),
  );
  if (named.length === 0) return { code: "jwt_key_unknown", detail };
  const candidates = named.filter(({ provider }) => provider.issuer === issuer);
  if (candidates.length === 0) return { code: "jwt_invalid", detail };
  return { candidates };
}

const MAX_QUOTED = 128;

/** Quotes an unverified claim, for the log only. */
function quoted(claim: unknown): string {
  return (JSON.stringify(claim) ?? "nothing").slice(0, MAX_QUOTED);
}

function parseSegment(segment: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (segment === undefined || !/^[A-Za-z0-9_-]+$/.test(segment)) return undefined;
  return parseJsonObject(Buffer.from(segment, "base64url").toString());
}

/** @throws the errors of jose; their messages name claims and never repeat the token */
async function verify(token: string, { provider, trusted }: Candidate): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, trusted.key, {
    algorithms: trusted.algorithms,
    issuer: provider.issuer,
    requiredClaims: provider.requiredClaims,
    clockTolerance: LEEWAY_SECONDS,
    ...(provider.audiences.length === 0 ? {} : { audience: provider.audiences }),
  });
  return payload;
}
