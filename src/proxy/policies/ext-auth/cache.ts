/** LRU cache of authorization verdicts, keyed by the values of configured expressions and bounded in number and size. */
import type { ExtAuthCache } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../../cel/scope.ts";
import { ExpressionCache } from "../shared/expression-cache.ts";
import type { CheckDeps, Verdict } from "./verdict.ts";

const MAX_BODY_BYTES = 65_536;

export class VerdictCache {
  readonly #cache: ExpressionCache<Verdict>;

  /** @throws ConfigError for a cache without a time to live */
  constructor(cache: ExtAuthCache, { expression, nowMs }: CheckDeps) {
    this.#cache = new ExpressionCache(cache, { compile: (source) => expression(source, "request"), nowMs });
  }

  /** @returns undefined when a part of the key has no text form: the service is asked and its verdict is not cached */
  keyOf(scope: Scope): string | undefined {
    return this.#cache.keyOf(scope);
  }

  get(key: string): Verdict | undefined {
    return this.#cache.get(key);
  }

  /** @param scope the request after the verdict was applied to it */
  put(key: string, verdict: Verdict, scope: Scope): void {
    if (!verdict.allowed && verdict.reply !== undefined) {
      const { status, body } = verdict.reply;
      // A 5xx tells that the service is in trouble; cached, one failure would reject all requests that follow.
      if (status >= 500 || body.length > MAX_BODY_BYTES) return;
    }
    this.#cache.put(key, verdict, scope);
  }
}
