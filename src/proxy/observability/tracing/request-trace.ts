/**
 * What a traced request carries: the ids that its log line and the calls made for it name, and the spans of these calls.
 * Spans are handed over together when the request has ended; one that ends later follows alone.
 */
import type { SpanSink } from "../../../telemetry/otlp/sinks.ts";
import type { Span } from "../../../telemetry/span.ts";
import {
  newSpanId,
  newTraceId,
  parseTraceparent,
  printTraceparent,
  type TraceParent,
} from "../../../telemetry/trace-context.ts";
import type { RoutedExchange } from "../../pipeline/exchange.ts";
import { OutboundSpan, type OutboundCall, type SpanOwner } from "./outbound-span.ts";

/** Fields of a request, or metadata of a call. */
export interface Carrier {
  set(name: string, value: string): void;
}

/** Of one request, its own included: a client that makes a request call others without end fills no memory. */
const MAX_SPANS = 128;
const MAX_TRACE_STATE = 512;
const SAMPLED = 0x01;
/** What metadata of gRPC may hold. */
const VISIBLE = /^[\x20-\x7e]+$/;

export class RequestTrace implements SpanOwner {
  readonly context: SpanOwner["context"];
  readonly spanId: string = newSpanId();
  readonly parentSpanId: string | undefined;
  readonly #sink: SpanSink;
  #begun = 1;
  #ended: OutboundSpan[] = [];
  /** "kept" and "dropped": the request is over. */
  #state: "open" | "kept" | "dropped" = "open";

  /** @param parent undefined: the trace begins here @param traceState of the client */
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
   * Tells whom the request calls which span is its parent.
   * @returns undefined when the request has enough spans; the call is then told of the request's own
   */
  begin(call: OutboundCall, carrier: Carrier): OutboundSpan | undefined {
    const span = this.#begun < MAX_SPANS && this.#state !== "dropped" ? new OutboundSpan(this, call) : undefined;
    if (span !== undefined) this.#begun++;
    const { traceId, flags, traceState } = this.context;
    carrier.set("traceparent", printTraceparent({ traceId, spanId: span?.spanId ?? this.spanId, flags }));
    // A request has it among its fields.
    if (call.kind === "Policy" && VISIBLE.test(traceState)) carrier.set("tracestate", traceState);
    return span;
  }

  ended(span: OutboundSpan): void {
    if (this.#state === "open") this.#ended.push(span);
    else if (this.#state === "kept") this.#sink.take([span.span]);
  }

  /** The request is over: call it once. @param span its own; undefined: none of them are sent */
  finish(span: Span | undefined): void {
    const ended = this.#ended;
    this.#ended = [];
    this.#state = span === undefined ? "dropped" : "kept";
    if (span !== undefined) this.#sink.take([span, ...ended.map((each) => each.span)]);
  }
}

/** Of a request that is not traced the trace that its client named. */
export function traceIdsOf({
  trace,
  requestHeaders,
}: Pick<RoutedExchange, "trace" | "requestHeaders">): { traceId: string; spanId: string | undefined } | undefined {
  if (trace !== undefined || !requestHeaders.has("traceparent")) return trace;
  const parent = parseTraceparent(requestHeaders.getAll("traceparent"));
  return parent === undefined ? undefined : { traceId: parent.traceId, spanId: undefined };
}
