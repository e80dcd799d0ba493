/**
 * LRU cache keyed by the values of configured expressions, bounded in number. A request whose key or time to live cannot
 * be computed is not cached. External authorization and callouts of models keep answers in it.
 */
import type { ExtAuthCache } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { Scope } from "../../../cel/scope.ts";
import { Duration, Timestamp, Uint } from "../../../cel/values.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { valueOf } from "./expression-support.ts";

type Compile = (source: string) => Expression;

interface Entry<V> {
  readonly value: V;
  readonly expiresAtMs: number;
}

export class ExpressionCache<V> {
  readonly #entries = new Map<string, Entry<V>>();
  readonly #key: readonly Expression[];
  readonly #ttlMs: (scope: Scope) => number | undefined;
  readonly #most: number;
  readonly #nowMs: () => number;

  /** @throws ConfigError for a cache without a time to live */
  constructor(
    { key, ttl, maxEntries }: Pick<ExtAuthCache, "key" | "ttl" | "maxEntries">,
    { compile, nowMs }: { readonly compile: Compile; readonly nowMs: () => number },
  ) {
    this.#key = key.map(compile);
    this.#ttlMs = compileTtl(ttl, compile);
    this.#most = maxEntries;
    this.#nowMs = nowMs;
  }

  /** @returns undefined when a part of the key has no text form: the service is asked and its answer is not cached */
  keyOf(scope: Scope): string | undefined {
    const parts: string[] = [];
    for (const expression of this.#key) {
      const part = keyPart(valueOf(expression, scope));
      if (part === undefined) return undefined;
      parts.push(part);
    }
    return JSON.stringify(parts);
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.expiresAtMs <= this.#nowMs()) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** @param scope the request once the answer is known */
  put(key: string, value: V, scope: Scope): void {
    const ttlMs = this.#ttlMs(scope);
    if (ttlMs === undefined || !(ttlMs > 0)) return;
    this.#entries.set(key, { value, expiresAtMs: this.#nowMs() + ttlMs });
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

function compileTtl(ttl: ExtAuthCache["ttl"], compile: Compile): (scope: Scope) => number | undefined {
  switch (ttl.case) {
    case "ttlMs": {
      const ms = Number(ttl.value);
      return () => ms;
    }
    case "ttlExpression": {
      const expression = compile(ttl.value);
      return (scope) => ttlOf(valueOf(expression, scope));
    }
    case undefined:
      throw new ConfigError("a cache of answers has no time to live");
  }
}

/** Accepts a duration from now, or the expiry as a timestamp or in seconds since 1970. */
function ttlOf(value: unknown): number | undefined {
  if (value instanceof Duration) return value.seconds * 1000 + value.nanos / 1_000_000;
  if (value instanceof Timestamp) return value.seconds * 1000 + value.nanos / 1_000_000 - Date.now();
  if (value instanceof Uint) return Number(value.value) * 1000 - Date.now();
  return typeof value === "bigint" || typeof value === "number" ? Number(value) * 1000 - Date.now() : undefined;
}
