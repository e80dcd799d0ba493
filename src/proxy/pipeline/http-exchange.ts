/**
 * The one implementation of ReportedExchange, and with it of Exchange and RoutedExchange: the request that arrived on
 * an HTTP listener and the state that the data plane adds to it. ActiveRequest creates it, and a mirror creates one for
 * each copy.
 *
 * One object lives as long as its request, so parts that most requests do not need are created on first use: queued
 * headers, log fields, expression roots, the second abort target. Two calls end it. `abort` gives up the work in
 * progress (client gone, deadline passed); work that registers later is aborted at once. `finish` takes effect once,
 * when the last byte has left or the exchange was given up: it stops the timer and runs the `onDone` callbacks.
 */
import { HeaderList } from "../../lib/header-list.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { RequestTrace } from "../observability/tracing/request-trace.ts";
import { PLAIN_REPORTS, type Reports } from "../observability/observability.ts";
import { BODY_LIMIT_BYTES, type Body } from "../exchange/body.ts";
import { holdStart } from "../exchange/buffering.ts";
import type {
  Abortable,
  Connection,
  MatchedPath,
  Outcome,
  ReportedExchange,
  Reply,
  RoutedExchange,
  TokenGate,
} from "../exchange/exchange.ts";
import { WatchedBody } from "../exchange/watched-body.ts";
import { proxyRoot, requestRoot } from "./roots.ts";
import { responseRoot } from "../exchange/response-root.ts";

export interface ReceivedRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  readonly scheme: "http" | "https";
  readonly version: string;
  readonly headers: HeaderList;
  readonly body: Body;
  /** undefined when the length is not known in advance. */
  readonly contentLength: number | undefined;
  /** The Upgrade protocols that the client offers. */
  readonly upgrade: string | undefined;
  /** True when the client asks for a tunnel to the host that it names (CONNECT). */
  readonly connect: boolean;
  /**
   * True when the client sent the absolute form, as it does to a proxy (RFC 9112 §3.2.2): policies may then ask for
   * proxy credentials.
   */
  readonly takenForProxy: boolean;
  readonly requestId: string;
  readonly source: Connection;
  readonly bind: string;
  /** SNI of the TLS handshake, "" when the client sent none; undefined for plain text. */
  readonly serverName: string | undefined;
  /** Values of Proxy-Authorization, which is not among `headers`. */
  readonly proxyAuthorization: readonly string[] | undefined;
  /** Values of CDN-Loop, joined by commas. */
  readonly cdnLoop: string | undefined;
}

export interface DeadlineWatcher {
  onDeadline(): void;
}

/** Where a request is headed: its listener until a rule is chosen, then the rule. */
export interface RequestDestination {
  /** Returns true when one of the backends is an LLM provider: its clients expect errors in the format of their API. */
  servesModels(exchange: HttpExchange): boolean;
}

type ListenerInfo = RoutedExchange["listener"];
type RouteInfo = NonNullable<RoutedExchange["route"]>;

export class HttpExchange implements ReportedExchange {
  readonly startedAtMs: number = performance.now();
  method: string;
  scheme: "http" | "https";
  readonly originalScheme: "http" | "https";
  readonly version: string;
  allowedOrigin: string | undefined = undefined;
  readonly originalTarget: string;
  readonly originalHost: string;
  readonly requestHeaders: HeaderList;
  readonly source: Connection;
  readonly requestId: string;
  readonly contentLength: number | undefined;
  readonly upgrade: string | undefined;
  readonly connect: boolean;
  readonly takenForProxy: boolean;
  readonly serverName: string | undefined;
  readonly proxyAuthorization: readonly string[] | undefined;
  readonly cdnLoop: string | undefined;
  readonly tokenGates: TokenGate[] = [];
  target: string;
  listener: ListenerInfo;
  /** The access log, metrics and tracing settings of its Bind. */
  reports: Reports = PLAIN_REPORTS;
  outboundKind: RoutedExchange["outboundKind"] = "Primary";
  trace: RequestTrace | undefined = undefined;
  debug: DebugTrace | undefined = undefined;
  route: RouteInfo | undefined = undefined;
  backend: RoutedExchange["backend"] = undefined;
  clientFormat: string | undefined = undefined;
  /** undefined until a listener is found. */
  destination: RequestDestination | undefined = undefined;
  /** "address:port" of the last call. */
  endpoint: string | undefined = undefined;
  requestLimitBytes: number = BODY_LIMIT_BYTES;
  responseLimitBytes: number = BODY_LIMIT_BYTES;
  requestBody: Body;
  /** Whether an expression of the chain reads the request body, perhaps after the answer has begun. */
  keepsRequestBody = false;
  backendTimeoutMs: number | undefined = undefined;
  /** Path match of the chosen rule. */
  matchedPath: MatchedPath | undefined = undefined;
  /** The last error that the data plane answered with. */
  error: ProxyError | undefined = undefined;
  /** The policy and field that raised this error; undefined when it came from elsewhere. */
  errorOrigin: string | undefined = undefined;
  /** The response as sent, with the edits of all policies. */
  reply: Reply | undefined = undefined;
  replyTrailers: readonly string[] | undefined = undefined;
  calledAtMs: number | undefined = undefined;
  answeredAtMs: number | undefined = undefined;
  /** performance.now() at the end of the exchange. */
  endedAtMs: number | undefined = undefined;
  /** The captured start of a request body that is too large to hold. */
  bodyPrefix: Buffer | undefined = undefined;
  /** Copies of the streamed bodies, for reports that read them. */
  requestWatch: WatchedBody | undefined = undefined;
  replyWatch: WatchedBody | undefined = undefined;
  hostChoice: RoutedExchange["hostChoice"] = undefined;
  retry: RoutedExchange["retry"] = undefined;
  tried: RoutedExchange["tried"] = undefined;
  attempt: RoutedExchange["attempt"] = undefined;
  /** Position in the list of requests in progress; -1 when it is not there. */
  taskIndex = -1;
  /** Notified when the deadline passes: the listener knows how much of the response was sent. */
  deadlineWatcher: DeadlineWatcher | undefined = undefined;
  #host: string;
  #startedAt: Date | undefined;
  #queuedHeaders: HeaderList | undefined;
  #roots: Map<string, unknown> | undefined;
  guardChecks: RoutedExchange["guardChecks"];
  agentCall: RoutedExchange["agentCall"] = undefined;
  mcpCall: RoutedExchange["mcpCall"] = undefined;
  replacementPrefix: string | undefined = undefined;
  #logFields: Map<string, string | number | boolean> | undefined;
  #secretParameters: Set<string> | undefined;
  #deadlineAtMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #abortable: Abortable | undefined;
  #moreAbortables: Abortable[] | undefined;
  #ended: Error | undefined;
  #done: ((outcome: Outcome) => void)[] | undefined;
  #over = false;

  constructor(received: ReceivedRequest) {
    this.method = received.method;
    this.target = received.target;
    this.originalTarget = received.target;
    this.#host = received.host;
    this.originalHost = received.host;
    this.scheme = received.scheme;
    this.originalScheme = received.scheme;
    this.version = received.version;
    this.requestHeaders = received.headers;
    this.requestBody = received.body;
    this.contentLength = received.contentLength;
    this.requestId = received.requestId;
    this.upgrade = received.upgrade;
    this.connect = received.connect;
    this.takenForProxy = received.takenForProxy;
    this.serverName = received.serverName;
    this.source = received.source;
    this.proxyAuthorization = received.proxyAuthorization;
    this.cdnLoop = received.cdnLoop;
    this.listener = { bind: received.bind, gateway: "", namespace: "", name: "" };
  }

  get host(): string {
    return this.#host;
  }

  /** A policy that changes the host wants it to be sent, so it is kept as it stands. */
  set host(value: string) {
    this.#host = value;
    this.hostChoice = "keep";
  }

  get startedAt(): Date {
    return (this.#startedAt ??= new Date(performance.timeOrigin + this.startedAtMs));
  }

  get queuedHeaders(): HeaderList {
    return (this.#queuedHeaders ??= new HeaderList());
  }

  /** The queued headers; undefined when no policy queued one. */
  get queued(): HeaderList | undefined {
    return this.#queuedHeaders;
  }

  /** The prefix that ReplacePrefixMatch replaces. */
  get matchedPrefix(): string | undefined {
    return this.matchedPath?.kind === "prefix" ? this.matchedPath.text : undefined;
  }

  get logFields(): ReadonlyMap<string, string | number | boolean> | undefined {
    return this.#logFields;
  }

  addLogField(name: string, value: string | number | boolean): void {
    (this.#logFields ??= new Map()).set(name, value);
  }

  /** Query parameters, in lower case, that policies have read credentials from. */
  get secretParameters(): ReadonlySet<string> | undefined {
    return this.#secretParameters;
  }

  addSecretParameter(name: string): void {
    (this.#secretParameters ??= new Set()).add(name.toLowerCase());
  }

  root(name: string): unknown {
    const set = this.#roots?.get(name);
    if (set !== undefined) return set;
    switch (name) {
      case "request":
        return this.#remember(name, requestRoot(this));
      case "response":
        return this.reply === undefined ? undefined : this.#remember(name, responseRoot(this.#answer(this.reply)));
      case "proxy":
        return this.#remember(name, proxyRoot(this));
      case "backend":
        return this.backend;
      default:
        return this.source.root(name);
    }
  }

  setRoot(name: string, value: unknown): void {
    (this.#roots ??= new Map()).set(name, value);
  }

  #remember(name: string, value: unknown): unknown {
    this.setRoot(name, value);
    return value;
  }

  /** Describes the response for reports, which run after its end. */
  #answer({ status, headers, body }: Reply): Parameters<typeof responseRoot>[0] {
    const answer = { status, headers, trailers: this.replyTrailers };
    const { replyWatch: watch } = this;
    if (watch !== undefined) return { ...answer, body: watch.body, bodyPrefix: watch.prefix };
    if (body !== null && !Buffer.isBuffer(body)) return { ...answer, body: null, bodyPrefix: null };
    const whole = body ?? Buffer.alloc(0);
    const fits = whole.length <= this.responseLimitBytes;
    return { ...answer, body: fits ? whole : null, bodyPrefix: whole.subarray(0, this.responseLimitBytes) };
  }

  /** Copies the request body while it streams, for reports that read it. */
  watchRequest(): void {
    const body = this.requestBody;
    if (body === null || Buffer.isBuffer(body)) return;
    this.requestWatch = new WatchedBody(body, this.#requestLimit.bind(this));
    this.requestBody = this.requestWatch;
  }

  /** Copies the response body while it streams, for reports that read it. */
  watchReply(reply: Reply): void {
    const { body } = reply;
    if (body === null || Buffer.isBuffer(body)) return;
    this.replyWatch = new WatchedBody(body, this.#replyLimit.bind(this));
    reply.body = this.replyWatch;
  }

  /** The start of a streamed request body, up to the limit; undefined when it was not kept. */
  get keptRequest(): Buffer | undefined {
    return this.requestWatch?.prefix;
  }

  /** The start of the response body, up to the limit; undefined when it was not kept. */
  get keptReply(): Buffer | undefined {
    if (this.replyWatch !== undefined) return this.replyWatch.prefix;
    const body = this.reply?.body;
    return Buffer.isBuffer(body) ? body.subarray(0, this.responseLimitBytes) : undefined;
  }

  #requestLimit(): number {
    return this.requestLimitBytes;
  }

  #replyLimit(): number {
    return this.responseLimitBytes;
  }

  /** False when the data plane itself made the response. */
  get answeredByUpstream(): boolean {
    return this.reply?.upstream === true;
  }

  get deadlineAtMs(): number | undefined {
    return this.#deadlineAtMs;
  }

  set deadlineAtMs(value: number | undefined) {
    this.#deadlineAtMs = value;
    clearTimeout(this.#timer);
    if (value === undefined || this.#over) return;
    const left = Math.max(0, value - performance.now());
    this.#timer = setTimeout(expire, left, this);
  }

  onAbort(target: Abortable): void {
    if (this.#ended !== undefined) target.abort(this.#ended);
    else if (this.#abortable === undefined) this.#abortable = target;
    else (this.#moreAbortables ??= []).push(target);
  }

  /** Gives up all work in progress for this request. */
  abort(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#abortable?.abort(error);
    for (const target of this.#moreAbortables ?? []) target.abort(error);
  }

  /** True once the client has gone away or the deadline has passed. */
  get aborted(): boolean {
    return this.#ended !== undefined;
  }

  async bufferRequestBody(limitBytes: number): Promise<Buffer | undefined> {
    const body = this.requestBody;
    if (body === null) return Buffer.alloc(0);
    if (Buffer.isBuffer(body)) return body.length <= limitBytes ? body : undefined;
    // Content-Length already exceeds the limit: answer before reading a byte.
    if (this.contentLength !== undefined && this.contentLength > limitBytes) return undefined;
    const held = await holdStart(body, limitBytes, this);
    this.requestBody = held.complete ? held.start : held.body;
    return held.complete ? held.start : undefined;
  }

  /**
   * Holds the request body for expressions, once; forwarding is not affected. A body above the limit continues as a
   * stream, and expressions can read its first bytes only.
   */
  async captureRequestBody(limitBytes: number): Promise<void> {
    const body = this.requestBody;
    if (body === null || Buffer.isBuffer(body) || (this.bodyPrefix?.length ?? -1) >= limitBytes) return;
    const held = await holdStart(body, limitBytes, this);
    this.requestBody = held.complete ? held.start : held.body;
    this.bodyPrefix = held.complete ? undefined : held.start.subarray(0, limitBytes);
  }

  /**
   * Lets go of a held request body once the answer has begun, unless an expression or a report reads it later. A stream
   * may last for minutes, and a prompt of an agent has hundreds of kilobytes.
   */
  releaseRequestBody(): void {
    const isRead = this.keepsRequestBody || this.reports.reads.requestBody || this.reports.readsConversation;
    if (!isRead && Buffer.isBuffer(this.requestBody)) this.requestBody = null;
  }

  onDone(callback: (outcome: Outcome) => void): void {
    (this.#done ??= []).push(callback);
  }

  /** Ends the exchange; further calls have no effect. */
  finish(outcome: Outcome): void {
    if (this.#over) return;
    this.#over = true;
    this.endedAtMs = this.startedAtMs + outcome.durationMs;
    clearTimeout(this.#timer);
    for (const callback of this.#done ?? []) callback(outcome);
  }

  get over(): boolean {
    return this.#over;
  }
}

function expire(exchange: HttpExchange): void {
  exchange.abort(new ProxyError("request_timeout"));
  exchange.deadlineWatcher?.onDeadline();
}
