/** The span of one call made for a traced request (docs/telemetry.md). It ends once; later notes are ignored. */
import type { Attribute, AttributeValue } from "../../../telemetry/attributes.ts";
import { unixNs, type Span } from "../../../telemetry/span.ts";
import { newSpanId } from "../../../telemetry/trace-context.ts";
import { isGwError, messageOf, describeError } from "../../../lib/errors.ts";
import type { OutboundKind, OutboundSubtype } from "./outbound.ts";

export interface OutboundCall {
  readonly kind: OutboundKind;
  readonly subtype: OutboundSubtype;
  /** Name of the span. */
  readonly name: string;
  readonly attributes?: readonly Attribute[];
}

/** The trace that a span belongs to; it receives the span when it ends. */
export interface SpanOwner {
  readonly context: Pick<Span, "traceId" | "flags" | "traceState">;
  /** The span of the request, which is the parent. */
  readonly spanId: string;
  ended(span: OutboundSpan): void;
}

export class OutboundSpan {
  readonly spanId: string = newSpanId();
  readonly #owner: SpanOwner;
  readonly #name: string;
  readonly #attributes: Attribute[];
  readonly #startedAtMs: number = performance.now();
  #endedAtMs: number | undefined;
  #error: string | undefined;

  constructor(owner: SpanOwner, { kind, subtype, name, attributes = [] }: OutboundCall) {
    this.#owner = owner;
    this.#name = name;
    this.#attributes = [["outbound.kind", kind], ["outbound.subtype", subtype], ...attributes];
  }

  get over(): boolean {
    return this.#endedAtMs !== undefined;
  }

  /** Callers use each name once. */
  note(name: string, value: AttributeValue): void {
    if (!this.over) this.#attributes.push([name, value]);
  }

  /** Records the head of an HTTP response. */
  answered(status: number): void {
    this.note("http.status", BigInt(status));
    if (status >= 500) this.broke(String(status));
  }

  /** Records that the call failed or broke off. The first failure counts. */
  failed(error: unknown): void {
    if (isGwError(error)) this.broke(error.code, describeError(error));
    else this.broke(error instanceof Error ? error.name : "Error", messageOf(error));
  }

  /** Marks the span as failed. The first failure counts. */
  broke(type: string, message = ""): void {
    if (this.over || this.#error !== undefined) return;
    this.note("error.type", type);
    this.#error = message;
  }

  /** @param atMs in terms of performance.now(); defaults to now */
  end(atMs: number = performance.now()): void {
    if (this.over) return;
    this.#endedAtMs = atMs;
    this.#owner.ended(this);
  }

  /** Returns the finished span; call it after `end`. */
  get span(): Span {
    const { context, spanId: parentSpanId } = this.#owner;
    return {
      ...context,
      spanId: this.spanId,
      parentSpanId,
      kind: "client",
      name: this.#name,
      startUnixNs: unixNs(this.#startedAtMs),
      endUnixNs: unixNs(this.#endedAtMs ?? this.#startedAtMs),
      attributes: this.#attributes,
      error: this.#error,
    };
  }
}
