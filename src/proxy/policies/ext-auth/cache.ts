/**
 * LRU cache of authorization verdicts, keyed by the values of configured expressions and bounded in number and size. A
 * request whose key or time to live cannot be computed is not cached.
 */
import type { ExtAuthCache } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Scope } from "../../../cel/scope.ts";
import { Duration, Timestamp, Uint } from "../../../cel/values.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { valueOf } from "../shared/expression-support.ts";
import type { Verdict } from "./verdict.ts";
import type { PolicyDeps } from "../policy.ts";

const MAX_BODY_BYTES = 65_536;

interface Entry {
  readonly verdict: Verdict;
  readonly expiresAtMs: number;
}

export class VerdictCache {
  readonly #entries = new Map<string, Entry>();
  readonly #key: readonly Expression[];
  readonly #ttlMs: (scope: Scope) => number | undefined;
  readonly #most: number;
  readonly #nowMs: () => number;

  /** @throws ConfigError for a cache without a time to live */
  constructor({ key, ttl, maxEntries }: ExtAuthCache, { expression, nowMs }: PolicyDeps) {
    this.#key = key.map((source) => expression(source, "request"));
    this.#ttlMs = compileTtl(ttl, expression);
    this.#most = maxEntries;
    this.#nowMs = nowMs;
  }

  /** @returns undefined when a part of the key has no text form: the service is asked and its verdict is not cached */
  keyOf(scope: Scope): string | undefined {
    const parts: string[] = [];
    for (const expression of this.#key) {
      const part = keyPart(valueOf(expression, scope));
      if (part === undefined) return undefined;
      parts.push(part);
    }
    return JSON.stringify(parts);
  }

  get(key: string): Verdict | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.expiresAtMs <= this.#nowMs()) return undefined;
    this.#entries.set(key, entry);
    return entry.verdict;
  }

  /** @param scope the request after the verdict was applied to it */
  put(key: string, verdict: Verdict, scope: Scope): void {
    if (!verdict.allowed && verdict.reply !== undefined) {
      const { status, body } = verdict.reply;
      // A 5xx tells that the service is in trouble; cached, one failure would reject all requests that follow.
      if (status >= 500 || body.length > MAX_BODY_BYTES) return;
    }
    const ttlMs = this.#ttlMs(scope);
    if (ttlMs === undefined || !(ttlMs > 0)) return;
    this.#entries.set(key, { verdict, expiresAtMs: this.#nowMs() + ttlMs });
    if (this.#entries.size <= this.#most) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}

/** Prefixes each value with its type, so that values of different types never share a key. */
function keyPart(value: unknown): string | undefined {
  if (value === null) return "null";
  if (typeof value === "string") return `s${value}`;
  if (typeof value === "boolean") return `b${value}`;
  if (typeof value === "bigint") return `i${value}`;
  if (typeof value === "number") return `d${value}`;
  if (value instanceof Uint) return `u${value.value}`;
  return value instanceof Uint8Array ? `y${Buffer.from(value).toString("base64")}` : undefined;
}

function compileTtl(ttl: ExtAuthCache["ttl"], compile: PolicyDeps["expression"]): (scope: Scope) => number | undefined {
  switch (ttl.case) {
    case "ttlMs": {
      const ms = Number(ttl.value);
      return () => ms;
    }
    case "ttlExpression": {
      const expression = compile(ttl.value, "request");
      return (scope) => ttlOf(valueOf(expression, scope));
    }
    case undefined:
      throw new ConfigError("the cache of an external authorization has no time to live");
  }
}

/** Accepts a duration from now, or the expiry as a timestamp or in seconds since 1970. */
function ttlOf(value: unknown): number | undefined {
  if (value instanceof Duration) return value.seconds * 1000 + value.nanos / 1_000_000;
  if (value instanceof Timestamp) return value.seconds * 1000 + value.nanos / 1_000_000 - Date.now();
  if (value instanceof Uint) return Number(value.value) * 1000 - Date.now();
  return typeof value === "bigint" || typeof value === "number" ? Number(value) * 1000 - Date.now() : undefined;
}
