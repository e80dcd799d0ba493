/** One part of a trace as it is handed over for export, when it is over (observability.md 4). */
import type { Attribute } from "./attributes.ts";

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** undefined: the first of its trace. */
  readonly parentSpanId: string | undefined;
  readonly flags: number;
  readonly traceState: string;
  readonly kind: "server" | "client";
  readonly name: string;
  readonly startUnixNs: bigint;
  readonly endUnixNs: bigint;
  readonly attributes: readonly Attribute[];
  /** Set: it failed, with this message; "" without one. */
  readonly error: string | undefined;
}

/** @param atMs of performance.now() */
export function unixNs(atMs: number): bigint {
  // Whole microseconds: a double holds no more of the present time.
  return BigInt(Math.round((performance.timeOrigin + atMs) * 1000)) * 1000n;
}
