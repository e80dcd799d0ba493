/**
 * Session affinity by weighted rendezvous hashing (highest random weight): the key ranks all endpoints, and the first
 * one serves. It needs no memory, and an endpoint that leaves moves only its own keys. Seeds and functions must never
 * change, so that all replicas and versions choose alike. Backends compile a `SessionKey`; pick.ts ranks.
 */
import type { SessionAffinity } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Scope } from "../../cel/scope.ts";
import type { RoutedExchange, MaybePromise } from "../exchange/exchange.ts";
import { high, low, multiply, set, xorShift, type Uint64 } from "../../lib/uint64.ts";
import { xxh3 } from "../../lib/xxh3.ts";

const KEY_SEED: Uint64 = { high: 0x9e37_79b1, low: 0x85eb_ca87 };
const MEMBER_SEED: Uint64 = { high: 0xc2b2_ae3d, low: 0x27d4_eb4f };

export interface HashedEndpoint {
  readonly capacity: number;
  readonly hash: Uint64;
}

/**
 * Computes the key of a session from a request or a connection; there is none when the expression fails or is empty.
 */
export class SessionKey {
  readonly #source: Expression;

  constructor({ source }: SessionAffinity, expression: (source: string, place: CelPhase) => Expression) {
    this.#source = expression(source, "request");
  }

  of(exchange: RoutedExchange): MaybePromise<Uint64 | undefined> {
    return this.#source.reads.requestBody ? this.#withBody(exchange) : this.#evaluate(exchange);
  }

  /** Computes the key of a raw connection, where expressions see only its addresses and not a request. */
  ofConnection(client: Scope): Uint64 | undefined {
    return this.#evaluate(client);
  }

  async #withBody(exchange: RoutedExchange): Promise<Uint64 | undefined> {
    await exchange.bufferRequestBody(exchange.requestLimitBytes);
    return this.#evaluate(exchange);
  }

  #evaluate(scope: Scope): Uint64 | undefined {
    try {
      return hashKey(this.#source.evaluate(scope));
    } catch (error) {
      if (error instanceof CelError) return undefined;
      throw error;
    }
  }
}

/** @param name the same in every replica */
export function hashEndpoint(name: string): Uint64 {
  return xxh3(Buffer.from(name), MEMBER_SEED);
}

/** @param value of the expression @returns undefined for an empty value, and for one that is neither text nor bytes */
export function hashKey(value: unknown): Uint64 | undefined {
  if (typeof value !== "string" && !(value instanceof Uint8Array)) return undefined;
  if (value.length === 0) return undefined;
  const bytes =
    typeof value === "string" ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return xxh3(bytes, KEY_SEED);
}

/** Returns the endpoint that ranks first for the key. */
export function pickByHash<T extends HashedEndpoint>(key: Uint64, members: readonly [T, ...T[]]): T {
  let [best] = members;
  mix(key, best.hash);
  let bestHigh = high;
  let bestLow = low;
  for (const member of members) {
    mix(key, member.hash);
    const wins =
      member.capacity === best.capacity
        ? high > bestHigh || (high === bestHigh && low > bestLow)
        : rank(member.capacity, high, low) > rank(best.capacity, bestHigh, bestLow);
    if (!wins) continue;
    best = member;
    bestHigh = high;
    bestLow = low;
  }
  return best;
}

/** Weighted rendezvous score: -w / ln(u), where u is the hash as a number between 0 and 1. */
function rank(capacity: number, h: number, l: number): number {
  return capacity / -Math.log(unit(h, l));
}

/** Mixes both hashes with the finaliser of SplitMix64; the result is in `high` and `low`. */
export function mix(key: Uint64, member: Uint64): void {
  set(key.high ^ member.high, key.low ^ member.low);
  xorShift(high, low, 30);
  multiply(high, low, 0xbf58_476d, 0x1ce4_e5b9);
  xorShift(high, low, 27);
  multiply(high, low, 0x94d0_49bb, 0x1331_11eb);
  xorShift(high, low, 31);
}

/** Returns the upper 53 bits as a number between 0 and 1, both excluded. */
function unit(h: number, l: number): number {
  return (h * 2 ** 21 + (l >>> 11) + 0.5) / 2 ** 53;
}
