/** Where finished records go that a collector shall have. What is given is encoded at once; nothing of it is kept. */
import type { AttributeSink } from "../attributes.ts";
import type { Span } from "../span.ts";

export interface LogHead {
  /** Since 1970. */
  readonly timeMs: number;
  /** 32 hexadecimal digits. */
  readonly traceId: string | undefined;
  /** 16 hexadecimal digits. */
  readonly spanId: string | undefined;
}

export interface LogSink {
  /** Begins a record. @returns where its fields go, until `end`; undefined: there is no room, and it is counted as lost */
  begin(head: LogHead): AttributeSink | undefined;
  /** The record that was begun is whole. */
  end(): void;
}

export interface SpanSink {
  /** @param spans all of one request */
  take(spans: readonly Span[]): void;
}
