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
