/**
 * The trace of one request: its IDs, which the log line and outgoing calls carry, and the spans of these calls. Spans
 * are exported together when the request has ended; a span that ends later is exported alone.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import type { SpanSink } from "../../../telemetry/otlp/sinks.ts";
import type { Span } from "../../../telemetry/span.ts";
import {
  newSpanId,
  newTraceId,
  parseTraceparent,
  printTraceparent,
  type TraceParent,
} from "../../../telemetry/trace-context.ts";
import { OutboundSpan, type OutboundCall, type SpanOwner } from "./outbound-span.ts";

/** Receives trace headers: the header fields of a request, or the metadata of a gRPC call. */
export interface Carrier {
  set(name: string, value: string): void;
}

/**
 * Limit of spans per request, its own included, so that a request that causes calls without end cannot fill the memory.
 */
const MAX_SPANS = 128;
const MAX_TRACE_STATE = 512;
const SAMPLED = 0x01;
/** Characters that gRPC metadata may contain. */
const VISIBLE = /^[\x20-\x7e]+$/;

export class RequestTrace implements SpanOwner {
  readonly context: SpanOwner["context"];
  readonly spanId: string = newSpanId();
  readonly parentSpanId: string | undefined;
  readonly #sink: SpanSink;
  #begun = 1;
  #ended: OutboundSpan[] = [];
  /** "kept" and "dropped" apply after the end of the request and tell whether its spans are exported. */
  #state: "open" | "kept" | "dropped" = "open";

  /**
   * @param parent undefined when the trace begins here
   * @param traceState as the client sent it
   */
  constructor(parent: TraceParent | undefined, traceState: string, sink: SpanSink) {
    this.context = {
      traceId: parent?.traceId ?? newTraceId(),
      flags: parent?.flags ?? SAMPLED,
      traceState: parent !== undefined && traceState.length <= MAX_TRACE_STATE ? traceState : "",
    };
    this.parentSpanId = parent?.spanId;
    this.#sink = sink;
  }

  get traceId(): string {
    return this.context.traceId;
  }

  /**
   * Begins the span of a call and writes trace headers that name it as the parent.
   * @returns undefined when the request has enough spans; the call then carries the span of the request
   */
  begin(call: OutboundCall, carrier: Carrier): OutboundSpan | undefined {
    const span = this.#begun < MAX_SPANS && this.#state !== "dropped" ? new OutboundSpan(this, call) : undefined;
    if (span !== undefined) this.#begun++;
    const { traceId, flags, traceState } = this.context;
    carrier.set("traceparent", printTraceparent({ traceId, spanId: span?.spanId ?? this.spanId, flags }));
    // Calls to backends forward tracestate among the fields of the request.
    if (call.kind === "Policy" && VISIBLE.test(traceState)) carrier.set("tracestate", traceState);
    return span;
  }

  ended(span: OutboundSpan): void {
    if (this.#state === "open") this.#ended.push(span);
    else if (this.#state === "kept") this.#sink.take([span.span]);
  }

  /**
   * Ends the trace; call it once.
   * @param span the span of the request; undefined when none of its spans are exported
   */
  finish(span: Span | undefined): void {
    const ended = this.#ended;
    this.#ended = [];
    this.#state = span === undefined ? "dropped" : "kept";
    if (span !== undefined) this.#sink.take([span, ...ended.map((each) => each.span)]);
  }
}

/** Returns the IDs of the trace; for a request that is not traced, those that its client sent. */
export function traceIdsOf({
  trace,
  requestHeaders,
}: {
  readonly trace: RequestTrace | undefined;
  readonly requestHeaders: HeaderList;
}): { traceId: string; spanId: string | undefined } | undefined {
  if (trace !== undefined || !requestHeaders.has("traceparent")) return trace;
  const parent = parseTraceparent(requestHeaders.getAll("traceparent"));
  return parent === undefined ? undefined : { traceId: parent.traceId, spanId: undefined };
}
