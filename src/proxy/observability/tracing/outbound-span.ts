/** The span of one call that is made for a traced request (observability.md 4.2). It ends once; what comes later is not told. */
import type { Attribute, AttributeValue } from "../../../telemetry/attributes.ts";
import { unixNs, type Span } from "../../../telemetry/span.ts";
import { newSpanId } from "../../../telemetry/trace-context.ts";
import { isGwError, messageOf } from "../../../lib/errors.ts";
import type { OutboundKind, OutboundSubtype } from "../outbound.ts";
import { describe } from "../describe.ts";

export interface OutboundCall {
  readonly kind: OutboundKind;
  readonly subtype: OutboundSubtype;
  /** Of the span. */
  readonly name: string;
  readonly attributes?: readonly Attribute[];
}

/** The trace that a span belongs to, which hears of its end. */
export interface SpanOwner {
  readonly context: Pick<Span, "traceId" | "flags" | "traceState">;
  /** Of the request. */
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

  /** A name comes once. */
  note(name: string, value: AttributeValue): void {
    if (!this.over) this.#attributes.push([name, value]);
  }

  /** The head of an answer over HTTP. */
  answered(status: number): void {
    this.note("http.status", BigInt(status));
    if (status >= 500) this.broke(String(status));
  }

  /** The call did not come to an answer, or broke off. The first failure counts. */
  failed(error: unknown): void {
    if (isGwError(error)) this.broke(error.code, describe(error));
    else this.broke(error instanceof Error ? error.name : "Error", messageOf(error));
  }

  /** It broke off, or went wrong in words of its own. */
  broke(type: string, message = ""): void {
    if (this.over || this.#error !== undefined) return;
    this.note("error.type", type);
    this.#error = message;
  }

  /** @param atMs of performance.now(); by default now */
  end(atMs: number = performance.now()): void {
    if (this.over) return;
    this.#endedAtMs = atMs;
    this.#owner.ended(this);
  }

  /** After its end. */
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
