/**
 * `tracing` of a Bind: which requests are traced, the attributes of their spans, and the collector (docs/telemetry.md).
 * Sampling is decided once, when a request arrives (head sampling); the filter applies when the request has ended.
 */
import { create } from "@bufbuild/protobuf";
import { OtlpEndpointSchema, type Tracing } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import type { Attribute } from "../../telemetry/attributes.ts";
import type { SpanSink } from "../../telemetry/otlp/sinks.ts";
import { drawOf, isSampled } from "../../telemetry/sampling.ts";
import { unixNs } from "../../telemetry/span.ts";
import { parseTraceparent, type TraceParent } from "../../telemetry/trace-context.ts";
import type { ReportedExchange } from "../exchange/exchange.ts";
import { isGrpc } from "../exchange/grpc.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import { valueOf } from "../policies/shared/expression-support.ts";
import { compileFilter } from "./access-log.ts";
import { compileAttributes, compileNamed, evaluateNamed, type CompiledAttributes } from "./attributes.ts";
import { spanColumns, type Column } from "./fields.ts";
import type { ReportDeps } from "./report-deps.ts";
import type { RequestStreamInfo } from "./stream-info/request-stream-info.ts";
import { RequestTrace } from "./tracing/request-trace.ts";

/** An added attribute of this name becomes the name of the span. */
const NAME = "span.name";
const SCHEME = "url.scheme";
/** Clients may influence the name. */
const MAX_NAME = 256;

export class TracingReport {
  /** True when the sampling decision reads the request body, which must then be captured first. */
  readonly samplesBody: boolean;
  readonly #sink: SpanSink;
  /** undefined when requests without a parent are not traced. */
  readonly #random: Expression | undefined;
  /** undefined when all requests with a parent are traced. */
  readonly #client: Expression | undefined;
  readonly #draw: () => number;
  readonly #wants: (scope: Scope) => boolean;
  readonly #columns: readonly Column[];
  readonly #hidden: CompiledAttributes["hidden"];
  readonly #added: CompiledAttributes["added"];

  constructor(message: Tracing, deps: ReportDeps) {
    const { endpoint = create(OtlpEndpointSchema), attributes, resources } = message;
    const share = (source: string): Expression | undefined =>
      source === "" ? undefined : deps.expression(source, "gateway");
    this.#random = share(message.randomSampling);
    this.#client = share(message.clientSampling);
    this.#draw = deps.random;
    this.samplesBody = [this.#random, this.#client].some((expression) => expression?.reads.requestBody === true);
    const named = compileNamed(resources, (source) => deps.expression(source, "process"));
    this.#sink = deps.exporters.spans(endpoint, [...evaluateNamed(named, deps.process)]);
    const { hidden, added } = compileAttributes(attributes, (source) => deps.expression(source, "log"));
    this.#wants = compileFilter(message.filter, deps);
    this.#columns = spanColumns(new Set(attributes?.remove)).filter(({ name }) => !hidden.has(name));
    this.#hidden = hidden;
    this.#added = added;
  }

  /** @returns undefined for a request that is not traced: trace headers of its client are forwarded unchanged */
  begin(exchange: ReportedExchange): RequestTrace | undefined {
    const { requestHeaders } = exchange;
    const parent = parseTraceparent(requestHeaders.getAll("traceparent"));
    if (!this.#samples(parent, exchange)) return undefined;
    return new RequestTrace(parent, requestHeaders.getAll("tracestate").join(","), this.#sink);
  }

  #samples(parent: TraceParent | undefined, exchange: ReportedExchange): boolean {
    if (parent === undefined)
      return this.#random !== undefined && isSampled(valueOf(this.#random, exchange), this.#draw);
    return this.#client === undefined || isSampled(valueOf(this.#client, exchange), () => drawOf(parent.traceId));
  }

  /** Exports the spans of a finished request, or drops them. */
  finish(trace: RequestTrace, exchange: ReportedExchange, info: RequestStreamInfo): void {
    if (!this.#wants(exchange)) {
      trace.finish(undefined);
      return;
    }
    const added = this.#added?.(exchange);
    const { context, spanId, parentSpanId } = trace;
    const given = added?.get(NAME);
    const name = typeof given === "string" && given !== "" ? given : nameOf(exchange);
    trace.finish({
      ...context,
      spanId,
      parentSpanId,
      kind: "server",
      name: name.slice(0, MAX_NAME),
      startUnixNs: unixNs(exchange.startedAtMs),
      endUnixNs: unixNs(exchange.endedAtMs ?? performance.now()),
      attributes: this.#attributes(exchange, info, added),
      error: info.error ?? (info.status >= 500 ? "" : undefined),
    });
  }

  #attributes(
    { originalScheme }: ReportedExchange,
    info: RequestStreamInfo,
    added: ReturnType<NonNullable<CompiledAttributes["added"]>> | undefined,
  ): Attribute[] {
    const attributes: Attribute[] = [];
    for (const { name, read } of this.#columns) {
      const value = read(info);
      if (value !== undefined && added?.has(name) !== true) attributes.push([name, value]);
    }
    if (!this.#hidden.has(SCHEME)) attributes.push([SCHEME, originalScheme]);
    for (const [name, value] of info.notes ?? [])
      if (!this.#hidden.has(name) && added?.has(name) !== true) attributes.push([name, value]);
    for (const [name, value] of added ?? []) if (name !== NAME) attributes.push([name, value]);
    return attributes;
  }
}

/** Uses the path match instead of the path: clients can send any number of paths. */
function nameOf({ method, matchedPath, mcpCall, requestHeaders, originalTarget }: ReportedExchange): string {
  if (mcpCall !== undefined) return mcpCall.method;
  if (isGrpc(requestHeaders)) return pathOf(originalTarget).slice(1);
  if (matchedPath === undefined) return "unknown";
  return `${method} ${matchedPath.kind === "prefix" ? `${matchedPath.text}/*` : matchedPath.text}`;
}
