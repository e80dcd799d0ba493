/** Keeps the tokens of one block that exchanges them. */
import { hash } from "node:crypto";
import type { TokenCacheSettings } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { monotonicMs } from "../../../../lib/time/monotonic.ts";
import type { MaybePromise } from "../../../exchange/exchange.ts";
import type { AuthCaller } from "../../../upstream/auth.ts";
import type { BlockDeps } from "../auth-kind.ts";
import { decodeClaims } from "./source-token.ts";
import type { TokenAnswer } from "./token-endpoint.ts";

const MARGIN_MS = 15_000;

export interface ExchangedTokens {
  /**
   * @param parts everything that changes the answer
   * @param subject token whose end is that of the new one, if it is a JWT
   */
  get(
    parts: readonly unknown[],
    subject: string,
    caller: AuthCaller,
    ask: () => Promise<TokenAnswer>,
  ): MaybePromise<string>;
}

export function openTokens(
  kind: string,
  settings: TokenCacheSettings | undefined,
  { tokens, place, block }: BlockDeps,
  timeoutMs: number,
): ExchangedTokens {
  const { maxEntries = 0, defaultTtlMs = 0 } = settings ?? {};
  const cache = tokens.cache<string>({ kind, place, block, marginMs: MARGIN_MS, maxEntries, timeoutMs });
  return {
    get(parts, subject, caller, ask) {
      const key = hash("sha256", JSON.stringify([subject, ...parts]), "base64");
      return cache.get(key, caller, async () => {
        const { accessToken, lifetimeMs = defaultTtlMs } = await ask();
        const fetchedAtMs = monotonicMs();
        const end = decodeClaims(subject)?.["exp"];
        const subjectMs = typeof end === "number" ? end * 1000 - Date.now() : Infinity;
        // The server has just taken the subject token, whatever our clock says.
        const usableMs = Math.min(lifetimeMs, Math.max(subjectMs, 1_000));
        return { value: accessToken, fetchedAtMs, expiresAtMs: fetchedAtMs + Math.max(usableMs, 1_000) };
      });
    },
  };
}
