/**
 * Rate limits of one replica (token buckets, shared/token-buckets.ts). Requests are counted when they pass here. LLM
 * tokens are charged through token gates, because only the LLM backend knows the usage: the request that crosses a
 * token budget succeeds, and the next one is refused.
 */
import {
  LimitKind,
  type LocalRateLimit,
  type LocalRateLimitRule,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Exchange, TokenGate } from "../exchange/exchange.ts";
import { compileChoice } from "./shared/conditional.ts";
import { textOf } from "./shared/expression-support.ts";
import type { Policy, PolicyDeps } from "./policy.ts";
import { type BucketSize, BucketTable, type TokenBucket } from "./shared/token-buckets.ts";

const MAX_KEYS = 10_000;
/** Largest capacity that fits the 32-bit counters of a bucket. */
const MAX_CAPACITY = 2 ** 32 - 2;
const SHARED = "";
const FAILED_KEY = Symbol("key could not be evaluated");

interface Entry {
  readonly countsTokens: boolean;
  readonly size: BucketSize;
  readonly table: BucketTable;
  keyFor(exchange: Exchange): string | symbol;
}

interface Charged {
  readonly entry: Entry;
  readonly key: string | symbol;
  readonly bucket: TokenBucket;
}

export const localRateLimit: Policy<LocalRateLimit> = {
  compile({ rules, branches }, deps) {
    // A plain list of rules equals one branch without a condition.
    const alternatives = branches.length === 0 ? [{ condition: "", rules }] : branches;
    const choose = compileChoice(
      alternatives.map((branch, at) => ({ ...branch, at })),
      (branch) => {
        const names = bucketNames(branch.rules);
        return branch.rules.map((rule, position) => compileEntry(rule, `${branch.at}/${names[position]}`, deps));
      },
      deps,
      "choose",
    );
    const { nowMs } = deps;
    return function localRateLimit(exchange, next) {
      const entries = choose(exchange);
      if (entries !== undefined) charge(exchange, entries, nowMs);
      return next();
    };
  },
};

function charge(exchange: Exchange, entries: readonly Entry[], nowMs: () => number): void {
  const now = nowMs();
  const charged = entries.map((entry) => chargedBy(entry, entry.keyFor(exchange)));
  const requests = charged.filter(({ entry }) => !entry.countsTokens);
  const empty = slowestEmpty(requests, now) ?? takeAll(requests);
  if (empty !== undefined) refuse(exchange, empty, now);
  for (const { entry, key } of charged)
    if (entry.countsTokens) exchange.tokenGates.push(new Gate(exchange, entry, key, nowMs));
  report(exchange, scarcest(charged, now), now);
}

/** Returns the empty entry that is refilled last: the request would be refused until then. */
function slowestEmpty(requests: readonly Charged[], now: number): Charged | undefined {
  let slowest: Charged | undefined;
  let longest = -1;
  for (const each of requests) {
    if (each.bucket.remaining(each.entry.size, now) >= 1) continue;
    const seconds = each.bucket.resetSeconds(each.entry.size, now);
    if (seconds > longest) [slowest, longest] = [each, seconds];
  }
  return slowest;
}

/**
 * Takes from all entries or from none: a request that one entry refuses must not use up another.
 * @returns the entry that another thread has just emptied
 */
function takeAll(requests: readonly Charged[]): Charged | undefined {
  const empty = requests.findIndex(({ bucket, entry }) => !bucket.tryTake(entry.size));
  if (empty < 0) return undefined;
  for (const { bucket } of requests.slice(0, empty)) bucket.giveBack();
  return requests[empty];
}

function chargedBy(entry: Entry, key: string | symbol): Charged {
  return { entry, key, bucket: entry.table.get(key) };
}

/**
 * Names of the buckets, chosen so that counts survive a change of the policy: amounts, bursts and units may change, and
 * rules may come and go. The first rule that counts the same (requests or tokens, with a key or without) is named by
 * that alone, further ones by their unit as well.
 */
function bucketNames(rules: readonly LocalRateLimitRule[]): string[] {
  const taken = new Set<string>();
  return rules.map(({ kind, key, unitMs }) => {
    const counted = `${kind}/${key === "" ? "all" : "keyed"}`;
    let name = counted;
    for (let at = 0; taken.has(name); at++) name = `${counted}/${unitMs}/${at}`;
    taken.add(name);
    return name;
  });
}

/** @throws ConfigError for a rule that could never let a request pass */
function compileEntry(rule: LocalRateLimitRule, name: string, deps: PolicyDeps): Entry {
  const { limit, burst, unitMs, kind, key } = rule;
  if (limit < 1 || unitMs < 1 || kind === LimitKind.UNSPECIFIED) {
    throw new ConfigError("a local rate limit needs a limit, a unit and a kind");
  }
  const size = { capacity: Math.min(limit + burst, MAX_CAPACITY), refill: limit, unitMs };
  const state = `${deps.owner}/local-rate-limit/${name}`;
  const table = deps.keep(state, () => new BucketTable(state, MAX_KEYS, deps.slots));
  const expression = key === "" ? undefined : deps.expression(key, "request");
  return {
    size,
    countsTokens: kind === LimitKind.TOKENS,
    table,
    keyFor(exchange) {
      return expression === undefined ? SHARED : (textOf(expression, exchange) ?? FAILED_KEY);
    },
  };
}

class Gate implements TokenGate {
  readonly #exchange: Exchange;
  readonly #entry: Entry;
  readonly #key: string | symbol;
  readonly #nowMs: () => number;

  constructor(exchange: Exchange, entry: Entry, key: string | symbol, nowMs: () => number) {
    this.#exchange = exchange;
    this.#entry = entry;
    this.#key = key;
    this.#nowMs = nowMs;
  }

  admit(): void {
    const charged = chargedBy(this.#entry, this.#key);
    const now = this.#nowMs();
    if (charged.bucket.remaining(this.#entry.size, now) < 1) refuse(this.#exchange, charged, now);
  }

  settle(totalTokens: number): void {
    // Looked up again: the table may have evicted the bucket since.
    const { bucket } = chargedBy(this.#entry, this.#key);
    const { size } = this.#entry;
    // Apply due refills first, so that the usage is charged to the time in which it ended.
    bucket.remaining(size, this.#nowMs());
    bucket.take(totalTokens);
  }
}

function scarcest(charged: readonly Charged[], now: number): Charged | undefined {
  let least: Charged | undefined;
  let leastRemaining = Number.POSITIVE_INFINITY;
  for (const each of charged) {
    const remaining = each.bucket.remaining(each.entry.size, now);
    if (remaining < leastRemaining) [least, leastRemaining] = [each, remaining];
  }
  return least;
}

function refuse(exchange: Exchange, charged: Charged, now: number): never {
  report(exchange, charged, now);
  // Every refill adds at least one, because usage above the capacity is dropped at the refill.
  const seconds = Math.max(1, charged.bucket.resetSeconds(charged.entry.size, now));
  exchange.queuedHeaders.set("retry-after", String(seconds));
  throw new ProxyError("rate_limited");
}

/** Writes the three headers as a unit, so that they always describe the same entry. */
function report({ queuedHeaders }: Exchange, charged: Charged | undefined, now: number): void {
  if (charged === undefined) return;
  const { bucket, entry } = charged;
  queuedHeaders.set("x-ratelimit-limit", String(entry.size.capacity));
  queuedHeaders.set("x-ratelimit-remaining", String(Math.floor(bucket.remaining(entry.size, now))));
  queuedHeaders.set("x-ratelimit-reset", String(bucket.resetSeconds(entry.size, now)));
}
