/** A finished span as handed to the exporter (docs/telemetry.md). */
import type { Attribute } from "./attributes.ts";

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** undefined for the first span of a trace. */
  readonly parentSpanId: string | undefined;
  readonly flags: number;
  readonly traceState: string;
  readonly kind: "server" | "client";
  readonly name: string;
  readonly startUnixNs: bigint;
  readonly endUnixNs: bigint;
  readonly attributes: readonly Attribute[];
  /** Set when the operation failed: the message, or "" without one. */
  readonly error: string | undefined;
}

/** @param atMs in terms of performance.now() */
export function unixNs(atMs: number): bigint {
  // Whole microseconds: a double has no more precision for the present time.
  return BigInt(Math.round((performance.timeOrigin + atMs) * 1000)) * 1000n;
}
