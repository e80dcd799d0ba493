/**
 * One call to one member of a set, from its choice to the last byte of the answer, and what it says about the member. The
 * verdict falls as soon as nothing can change it: with the head of the answer, or when the body has ended.
 */
import type { HeaderList } from "../../lib/header-list.ts";
import type { Scope } from "../../cel/scope.ts";
import { ProxyError, type ProxyErrorCode } from "../errors.ts";
import type { Body } from "../pipeline/body.ts";
import { captureBody, NOT_CAPTURED, type Captured } from "../pipeline/capture.ts";
import { printError } from "../pipeline/error-reply.ts";
import type { RoutedExchange, Outcome } from "../pipeline/exchange.ts";
import type { OutboundSpan } from "../observability/tracing/outbound-span.ts";
import { grpcStatusOf, responseRoot, type AnswerFacts } from "../pipeline/roots.ts";
import type { EndpointStats } from "../balancing/endpoint-stats.ts";
import type { HealthRule } from "../balancing/health.ts";
import { rateLimitHintMs } from "../upstream/rate-limit-hint.ts";

/** Failures for which the member answers: the others are the client's doing or that of a policy. */
const COUNTED: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>([
  "connect_timeout",
  "backend_timeout",
  "request_timeout",
  "upstream_unreachable",
  "upstream_broken",
  "response_invalid",
  "upgrade_failed",
]);

export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Body;
}

export class Attempt {
  /** Of a call that is traced; it ends with the attempt. */
  span: OutboundSpan | undefined = undefined;
  readonly #exchange: RoutedExchange;
  readonly #record: EndpointStats;
  readonly #rule: HealthRule;
  readonly #grpc: boolean;
  #behind: EndpointStats | undefined;
  readonly #startedAtMs: number = performance.now();
  #latencyMs: number | undefined;
  #hintMs: number | undefined;
  #answer: AnswerFacts | undefined;
  #judged = false;
  #over = false;

  /** @param grpc whether the answer says how it went in `grpc-status` */
  constructor(exchange: RoutedExchange, record: EndpointStats, rule: HealthRule, grpc: boolean) {
    this.#exchange = exchange;
    this.#record = record;
    this.#rule = rule;
    this.#grpc = grpc;
    record.begin();
    exchange.calledAtMs ??= this.#startedAtMs;
    exchange.attempt = this;
    exchange.onDone(this.#end.bind(this));
  }

  /** Of the same call: an endpoint behind the member. It keeps a score; only the member is put out of rotation. */
  alsoTell(record: EndpointStats): void {
    this.#behind = record;
    record.begin();
  }

  /** The verdict needs the body of the answer. */
  get readsBody(): boolean {
    return this.#rule.condition?.reads.responseBody === true;
  }

  /** The head of the answer is here. Its headers are looked at now: policies may change them on their way. */
  answered({ status, headers, body }: AnswerHead, captured: Captured = NOT_CAPTURED): void {
    this.headed(status);
    const { condition } = this.#rule;
    if (condition === undefined && status >= 500) return this.#judge(true);
    const isLast = isComplete(body);
    if (condition === undefined && isLast && !this.#grpc) return this.#judge(false);
    this.#hintMs = condition === undefined ? undefined : rateLimitHintMs(status, headers, Date.now());
    const kept = condition === undefined ? headers : headers.clone();
    this.#answer = { status, headers: kept, body: captured.body, bodyPrefix: captured.prefix };
    if (isLast) this.#judge(this.#isUnhealthy(this.#answer));
  }

  async answeredWithBody(reply: { readonly status: number; readonly headers: HeaderList; body: Body }): Promise<void> {
    this.headed(reply.status);
    const captured = await captureBody(reply, this.#exchange.responseLimitBytes);
    this.answered(reply, captured);
  }

  /** The first word of the upstream, where what is made of its answer comes later. */
  headed(status: number): void {
    if (this.#latencyMs !== undefined) return;
    this.span?.answered(status);
    const now = performance.now();
    this.#exchange.answeredAtMs = now;
    this.#latencyMs = now - this.#startedAtMs;
    this.#rule.meter?.called(this.#exchange.outboundKind, this.#latencyMs / 1000);
  }

  /** No answer came, or none that can be used. */
  failed(error: unknown): void {
    this.span?.failed(error);
    if (this.#latencyMs === undefined)
      this.#rule.meter?.called(this.#exchange.outboundKind, (performance.now() - this.#startedAtMs) / 1000);
    if (error instanceof ProxyError && COUNTED.has(error.code) && !this.#isForClient(error.code)) {
      const { status, headers } = printError(error, this.#grpc);
      const answer = { status, headers, body: null, bodyPrefix: null };
      this.#judge(this.#rule.condition === undefined || this.#isUnhealthy(answer));
    }
    this.#close();
  }

  /** Whoever sends slowly must not put members out of rotation: time that ran out meanwhile says nothing about them. */
  #isForClient(code: ProxyErrorCode): boolean {
    if (code !== "request_timeout" && code !== "backend_timeout") return false;
    const { requestBody } = this.#exchange;
    return requestBody !== null && !Buffer.isBuffer(requestBody) && requestBody.isComplete === false;
  }

  /** The answer is thrown away for another attempt. */
  discard(): void {
    if (this.#answer !== undefined) this.#judge(this.#isUnhealthy(this.#answer));
    this.#close();
  }

  #end({ clientGone, error, durationMs }: Outcome): void {
    if (clientGone) this.span?.broke("ClientClosed");
    else if (this.span !== undefined && error !== undefined) this.#endedEarly(this.span, error);
    if (this.#answer !== undefined && !clientGone) {
      const trailers = this.#exchange.replyTrailers;
      const broke = this.#rule.condition === undefined && error === "upstream_broken";
      this.#judge(broke || this.#isUnhealthy(trailers === undefined ? this.#answer : { ...this.#answer, trailers }));
    }
    // Not later than the request itself.
    this.span?.end(this.#exchange.startedAtMs + durationMs);
    this.#close();
  }

  #endedEarly(span: OutboundSpan, error: string): void {
    for (const code of COUNTED) if (code === error) span.broke(code);
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    // What comes later belongs to nobody.
    this.#judged = true;
    this.#record.end();
    this.#behind?.end();
    this.span?.end();
  }

  #isUnhealthy(answer: AnswerFacts): boolean {
    const { condition } = this.#rule;
    if (condition === undefined) return answer.status >= 500 || (this.#grpc && (grpcStatusOf(answer) ?? 0) !== 0);
    return this.#rule.finds(condition, new AnswerScope(this.#exchange, answer));
  }

  #judge(unhealthy: boolean): void {
    if (this.#judged) return;
    this.#judged = true;
    if (unhealthy) this.#rule.recordUnhealthy(this.#record, this.#hintMs, this.#exchange.retry?.backoffMs ?? 0);
    else this.#record.recordHealthy((this.#latencyMs ?? 0) / 1000);
    if (this.#behind === undefined) return;
    if (unhealthy) this.#behind.recordUnhealthy();
    else this.#behind.recordHealthy((this.#latencyMs ?? 0) / 1000);
  }
}

/** What the request sees, with the answer of the upstream instead of the one that policies made of it. */
class AnswerScope implements Scope {
  readonly #exchange: Scope;
  readonly #response: unknown;

  constructor(exchange: Scope, answer: AnswerFacts) {
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
