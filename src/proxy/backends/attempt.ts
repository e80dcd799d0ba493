/**
 * One attempt: a call to one endpoint, from its choice to the last byte of the response, and the verdict on the
 * endpoint's health. HTTP and LLM handlers create one per call. The verdict falls once, as soon as nothing can change
 * it:
 *
 *     begin ─┬─ answered: the status alone decides, or the whole body is there ───────────────────────────┬─▶ verdict
 *            ├─ answered: body or trailers still count ──▶ end of the exchange, or `discard` for a retry ──┤
 *            ├─ failed with a code in COUNTED, and not by a timeout while the client was still sending ────┘
 *            └─ failed otherwise, or the client has gone ──▶ no verdict
 *
 * A stream that breaks off and a gRPC status in trailers count in this way. See docs/adr/0007-health-verdicts.md.
 */
import type { HeaderList } from "../../lib/header-list.ts";
import type { Scope } from "../../cel/scope.ts";
import { ProxyError, type ProxyErrorCode } from "../exchange/errors.ts";
import type { Body } from "../exchange/body.ts";
import { captureBody, NOT_CAPTURED, type Captured } from "../exchange/capture.ts";
import { printError } from "../exchange/print-error.ts";
import type { RoutedExchange, Outcome } from "../exchange/exchange.ts";
import type { OutboundSpan } from "../observability/tracing/outbound-span.ts";
import { grpcStatusOf, responseRoot, type ResponseInfo } from "../exchange/response-root.ts";
import type { EndpointStats } from "../balancing/endpoint-stats.ts";
import type { HealthRule } from "../balancing/health.ts";
import { rateLimitHintMs } from "../upstream/rate-limit-hint.ts";

/** Failures that count against the endpoint; all others are caused by the client or by a policy. */
const COUNTED: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "connect_timeout",
  "backend_timeout",
  "request_timeout",
  "upstream_unreachable",
  "upstream_broken",
  "picker_failed",
  "endpoint_unavailable",
  "response_invalid",
  "llm_response_invalid",
  "upgrade_failed",
]);

export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Body;
}

/** What ejects the endpoint behind a provider. */
export interface EndpointRule {
  readonly rule: HealthRule;
  /** Decides whether other endpoints are in rotation, so that the provider stays in rotation too. */
  hasOthers(): boolean;
}

export class Attempt {
  /** Span of a traced call; it ends with the attempt. */
  span: OutboundSpan | undefined = undefined;
  readonly #exchange: RoutedExchange;
  readonly #record: EndpointStats;
  readonly #rule: HealthRule;
  readonly #grpc: boolean;
  #behind: { readonly record: EndpointStats; readonly rule: EndpointRule | undefined } | undefined;
  readonly #startedAtMs: number = performance.now();
  #latencyMs: number | undefined;
  #hintMs: number | undefined;
  #answer: ResponseInfo | undefined;
  #recorded = false;
  #over = false;

  /** @param grpc true when `grpc-status` carries the outcome of the response */
  constructor(exchange: RoutedExchange, record: EndpointStats, rule: HealthRule, grpc: boolean) {
    this.#exchange = exchange;
    this.#record = record;
    this.#rule = rule;
    this.#grpc = grpc;
    record.begin();
    exchange.calledAtMs ??= this.#startedAtMs;
    exchange.attempt = this;
    exchange.debug?.record({ type: "backendCallStart", target: exchange.endpoint ?? "" }, { scope: this.#scope() });
    exchange.onDone(this.#end.bind(this));
  }

  /**
   * Adds the endpoint behind a provider, which gets the same verdict.
   * @param behind its rule ejects it; without one it is never ejected
   */
  alsoTell(behind: { readonly record: EndpointStats; readonly rule: EndpointRule | undefined }): void {
    // Another endpoint is tried in place of the one before, which could not be connected to.
    this.#behind?.record.recordUnhealthy();
    this.#behind?.record.end();
    this.#behind = behind;
    behind.record.begin();
  }

  /** Whether the verdict needs the body of the response. */
  get readsBody(): boolean {
    return this.#rule.condition?.reads.responseBody === true;
  }

  /**
   * Handles the head of the response. Its headers are copied now when a condition reads them, because policies may
   * change them.
   */
  answered({ status, headers, body }: AnswerHead, captured: Captured = NOT_CAPTURED): void {
    this.headed(status);
    const { condition } = this.#rule;
    if (condition === undefined && status >= 500) return this.#recordOutcome(true);
    const isLast = isComplete(body);
    if (condition === undefined && isLast && !this.#grpc) return this.#recordOutcome(false);
    this.#hintMs = condition === undefined ? undefined : rateLimitHintMs(status, headers, Date.now());
    const kept = condition === undefined ? headers : headers.clone();
    this.#answer = { status, headers: kept, body: captured.body, bodyPrefix: captured.prefix };
    if (isLast) this.#recordOutcome(this.#isUnhealthy(this.#answer));
  }

  async answeredWithBody(reply: { readonly status: number; readonly headers: HeaderList; body: Body }): Promise<void> {
    this.headed(reply.status);
    const captured = await captureBody(reply, this.#exchange.responseLimitBytes);
    this.answered(reply, captured);
  }

  /** Records the latency at the first sign of a response, for callers that process it before they call `answered`. */
  headed(status: number): void {
    if (this.#latencyMs !== undefined) return;
    this.span?.answered(status);
    this.#traceResult(status, null);
    const now = performance.now();
    this.#exchange.answeredAtMs = now;
    this.#latencyMs = now - this.#startedAtMs;
    this.#rule.meter?.called(this.#exchange.outboundKind, this.#latencyMs / 1000);
  }

  /** Handles a call without a usable response. */
  failed(error: unknown): void {
    this.span?.failed(error);
    this.#traceResult(null, error instanceof ProxyError ? error.code : "internal");
    if (this.#latencyMs === undefined)
      this.#rule.meter?.called(this.#exchange.outboundKind, (performance.now() - this.#startedAtMs) / 1000);
    if (error instanceof ProxyError && COUNTED.has(error.code) && !this.#isForClient(error.code)) {
      const { status, headers } = printError(error, this.#grpc);
      const answer = { status, headers, body: null, bodyPrefix: null };
      this.#recordOutcome(this.#rule.condition === undefined || this.#isUnhealthy(answer));
    }
    this.#close();
  }

  #traceResult(status: number | null, error: string | null): void {
    const { debug } = this.#exchange;
    if (debug === undefined) return;
    debug.record(
      { type: "backendCallResult", status, error },
      { startedAtMs: this.#startedAtMs, scope: this.#scope() },
    );
  }

  /** The number of the attempt, where the request may make several. */
  #scope(): string[] {
    const { backend, tried } = this.#exchange;
    const name = `backend ${backend?.name ?? ""}`;
    return tried === undefined ? [name] : [name, `attempt ${Math.max(1, tried.length)}`];
  }

  /**
   * A timeout while the client is still sending says nothing about the endpoint: slow clients must not eject endpoints.
   */
  #isForClient(code: ProxyErrorCode): boolean {
    if (code !== "request_timeout" && code !== "backend_timeout") return false;
    const { requestBody } = this.#exchange;
    return requestBody !== null && !Buffer.isBuffer(requestBody) && requestBody.isComplete === false;
  }

  /** Gives the verdict when the response is dropped for another attempt. */
  discard(): void {
    if (this.#answer !== undefined) this.#recordOutcome(this.#isUnhealthy(this.#answer));
    this.#close();
  }

  #end({ clientGone, error, durationMs }: Outcome): void {
    if (clientGone) this.span?.broke("ClientClosed");
    else if (this.span !== undefined && error !== undefined) this.#endedEarly(this.span, error);
    if (this.#answer !== undefined && !clientGone) {
      const trailers = this.#exchange.replyTrailers;
      const broke = this.#rule.condition === undefined && error === "upstream_broken";
      this.#recordOutcome(
        broke || this.#isUnhealthy(trailers === undefined ? this.#answer : { ...this.#answer, trailers }),
      );
    }
    // The span must not end later than the request itself.
    this.span?.end(this.#exchange.startedAtMs + durationMs);
    this.#close();
  }

  #endedEarly(span: OutboundSpan, error: string): void {
    for (const code of COUNTED) if (code === error) span.broke(code);
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    // Later events must not count: the attempt is over.
    this.#recorded = true;
    this.#record.end();
    this.#behind?.record.end();
    this.span?.end();
  }

  #isUnhealthy(answer: ResponseInfo): boolean {
    const { condition } = this.#rule;
    if (condition === undefined) return answer.status >= 500 || (this.#grpc && (grpcStatusOf(answer) ?? 0) !== 0);
    return this.#rule.finds(condition, new AnswerScope(this.#exchange, answer));
  }

  #recordOutcome(unhealthy: boolean): void {
    if (this.#recorded) return;
    this.#recorded = true;
    if (!unhealthy) {
      const latencyS = (this.#latencyMs ?? 0) / 1000;
      this.#record.recordHealthy(latencyS);
      this.#behind?.record.recordHealthy(latencyS);
      return;
    }
    const backoffMs = this.#exchange.retry?.backoffMs ?? 0;
    const { record, rule } = this.#behind ?? {};
    if (rule === undefined) record?.recordUnhealthy();
    else if (record !== undefined) rule.rule.recordUnhealthy(record, this.#hintMs, backoffMs);
    if (rule?.hasOthers() === true) this.#record.recordUnhealthy();
    else this.#rule.recordUnhealthy(this.#record, this.#hintMs, backoffMs);
  }
}

/** Scope of the health condition: the exchange, with the response of the upstream before policies have changed it. */
class AnswerScope implements Scope {
  readonly #exchange: Scope;
  readonly #response: unknown;

  constructor(exchange: Scope, answer: ResponseInfo) {
    this.#exchange = exchange;
    this.#response = responseRoot(answer);
  }

  root(name: string): unknown {
    return name === "response" ? this.#response : this.#exchange.root(name);
  }
}

function isComplete(body: Body): boolean {
  return body === null || Buffer.isBuffer(body) || body.whole?.() !== undefined;
}
