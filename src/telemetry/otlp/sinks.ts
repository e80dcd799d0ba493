/** Interfaces for finished records that go to a collector. Implementations encode at once and keep no references. */
import type { AttributeSink } from "../attributes.ts";
import type { Span } from "../span.ts";

export interface LogHead {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** 32 hexadecimal digits. */
  readonly traceId: string | undefined;
  /** 16 hexadecimal digits. */
  readonly spanId: string | undefined;
}

export interface LogSink {
  /**
   * Begins a record.
   * @returns the sink for its fields, until `end`; undefined when there is no room, and the record is counted as lost
   */
  begin(head: LogHead): AttributeSink | undefined;
  /** Completes the record that was begun. */
  end(): void;
}

export interface SpanSink {
  /** @param spans all of one request */
  take(spans: readonly Span[]): void;
}
