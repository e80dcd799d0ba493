/**
 * Parses and prints `traceparent` (W3C Trace Context §3.2). A header that is not clearly valid is ignored: the request
 * then begins a trace of its own instead of joining an unrelated one.
 */
import { randomFillSync } from "node:crypto";

export interface TraceParent {
  /** 32 digits. */
  readonly traceId: string;
  /** 16 digits, of the caller's span. */
  readonly spanId: string;
  /** The known flags: sampled, and random of level 2. */
  readonly flags: number;
}

/** Unknown flags are sent as zero. */
const KNOWN_FLAGS = 0x03;
/** Length of a header of version 00; a later version may continue after a dash. */
const LENGTH = 55;
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/**
 * @param values of all `traceparent` fields; several fields are invalid
 * @returns undefined when there is no valid header
 */
export function parseTraceparent(values: readonly string[]): TraceParent | undefined {
  const [value] = values;
  if (value === undefined || values.length > 1 || value.length < LENGTH) return undefined;
  if (value.length > LENGTH && value.startsWith("00")) return undefined;
  const [, traceId, spanId, flags] = FORM.exec(value) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & KNOWN_FLAGS };
}

export function printTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-0${flags & KNOWN_FLAGS}`;
}

export function newTraceId(): string {
  return randomHex(16);
}

export function newSpanId(): string {
  return randomHex(8);
}

/** Random bytes for many IDs, because a system call per ID would cost more than the rest of a span. */
const pool = Buffer.alloc(8_192);
let used: number = pool.length;

function randomHex(bytes: number): string {
  for (;;) {
    if (used + bytes > pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const text = pool.toString("hex", used, used + bytes);
    used += bytes;
    if (/[^0]/.test(text)) return text;
  }
}
