/** The one implementation of RoutedExchange: what arrived on an HTTP listener, and what the data plane notes about it. */
import type { Scope } from "../../cel/scope.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError } from "../errors.ts";
import type { RequestTrace } from "../observability/tracing/request-trace.ts";
import { PLAIN_REPORTS, type Reports } from "../observability/observability.ts";
import type { PathMatch } from "../router/match.ts";
import { BODY_LIMIT_BYTES, type Body } from "./body.ts";
import { holdStart } from "./buffering.ts";
import type { Abortable, RoutedExchange, Outcome, Reply, TokenGate } from "./exchange.ts";
import { WatchedBody } from "./watched-body.ts";
import { proxyRoot, requestRoot, responseRoot } from "./roots.ts";

export interface ReceivedRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  readonly scheme: "http" | "https";
  readonly version: string;
  readonly headers: HeaderList;
  readonly body: Body;
  /** undefined when the length is not known beforehand. */
  readonly contentLength: number | undefined;
  /** The protocols that the client wants to go on with. */
  readonly upgrade: string | undefined;
  /** It asks for a tunnel to the host that it names. */
  readonly connect: boolean;
  /** The client named the whole URL, as one does to a proxy (RFC 9112 3.2.2): it may be asked for a credential as one. */
  readonly takenForProxy: boolean;
  readonly requestId: string;
  readonly source: Connection;
  readonly bind: string;
  /** The name that the client asked for in its TLS handshake, "" for none; undefined: plain text. */
  readonly serverName: string | undefined;
  /** Values of the field, which is not among `headers`. */
  readonly proxyAuthorization: readonly string[] | undefined;
  /** Values of CDN-Loop, joined. */
  readonly cdnLoop: string | undefined;
}

/** The connection that a request came by: it also knows what expressions see of it. */
export interface Connection extends Scope {
  readonly address: string;
  readonly port: number;
}

export interface DeadlineWatcher {
  onDeadline(): void;
}

/** Where a request is bound for: its listener until a rule is chosen, then the rule. */
export interface RequestDestination {
  /** Whether one of the backends there is a provider of models: its clients read errors in a format of their own. */
  servesModels(exchange: HttpExchange): boolean;
}

type ListenerInfo = RoutedExchange["listener"];
type RouteInfo = NonNullable<RoutedExchange["route"]>;

export class HttpExchange implements RoutedExchange {
  readonly startedAtMs: number = performance.now();
  method: string;
  scheme: "http" | "https";
  readonly originalScheme: "http" | "https";
  readonly version: string;
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
  /** What its Bind reports about it. */
  reports: Reports = PLAIN_REPORTS;
  outboundKind: RoutedExchange["outboundKind"] = "Primary";
  trace: RequestTrace | undefined = undefined;
  route: RouteInfo | undefined = undefined;
  backend: RoutedExchange["backend"] = undefined;
  /** undefined until a listener is found. */
  destination: RequestDestination | undefined = undefined;
  /** "address:port" that was called. */
  endpoint: string | undefined = undefined;
  requestLimitBytes: number = BODY_LIMIT_BYTES;
  responseLimitBytes: number = BODY_LIMIT_BYTES;
  requestBody: Body;
  backendTimeoutMs: number | undefined = undefined;
  /** Of the match that was chosen. */
  matchedPath: PathMatch | undefined = undefined;
  /** The last error that the data plane itself answered with. */
  error: ProxyError | undefined = undefined;
  /** The policy and its field that this error came from; undefined: it came from none. */
  errorOrigin: string | undefined = undefined;
  /** The answer as it went out, policies and all. */
  reply: Reply | undefined = undefined;
  replyTrailers: readonly string[] | undefined = undefined;
  calledAtMs: number | undefined = undefined;
  answeredAtMs: number | undefined = undefined;
  /** performance.now() at the end of the exchange. */
  endedAtMs: number | undefined = undefined;
  /** What was captured of a request body that is too large to hold. */
  bodyPrefix: Buffer | undefined = undefined;
  /** Copies of what passes, for reports that read it. */
  requestWatch: WatchedBody | undefined = undefined;
  replyWatch: WatchedBody | undefined = undefined;
  hostChoice: RoutedExchange["hostChoice"] = undefined;
  retry: RoutedExchange["retry"] = undefined;
  tried: RoutedExchange["tried"] = undefined;
  attempt: RoutedExchange["attempt"] = undefined;
  /** Told when the deadline has passed: the listener's, which knows what was sent. */
  deadlineWatcher: DeadlineWatcher | undefined = undefined;
  #host: string;
  #startedAt: Date | undefined;
  #queuedHeaders: HeaderList | undefined;
  #roots: Map<string, unknown> | undefined;
  #logFields: Map<string, string | number | boolean> | undefined;
  #secretParameters: Set<string> | undefined;
  #deadlineAtMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #abortable: Abortable | undefined;
  #moreAbortables: Abortable[] | undefined;
  #ended: Error | undefined;
  #done: ((outcome: Outcome) => void)[] | undefined;
  #over = false;

  constructor(arrival: ReceivedRequest) {
    this.method = arrival.method;
    this.target = arrival.target;
    this.originalTarget = arrival.target;
    this.#host = arrival.host;
    this.originalHost = arrival.host;
    this.scheme = arrival.scheme;
    this.originalScheme = arrival.scheme;
    this.version = arrival.version;
    this.requestHeaders = arrival.headers;
    this.requestBody = arrival.body;
    this.contentLength = arrival.contentLength;
    this.requestId = arrival.requestId;
    this.upgrade = arrival.upgrade;
    this.connect = arrival.connect;
    this.takenForProxy = arrival.takenForProxy;
    this.serverName = arrival.serverName;
    this.source = arrival.source;
    this.proxyAuthorization = arrival.proxyAuthorization;
    this.cdnLoop = arrival.cdnLoop;
    this.listener = { bind: arrival.bind, gateway: "", namespace: "", name: "" };
  }

  get host(): string {
    return this.#host;
  }

  /** Whoever changes the host means it to be sent. */
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

  /** The queued headers if anyone queued one. */
  get queued(): HeaderList | undefined {
    return this.#queuedHeaders;
  }

  /** What ReplacePrefixMatch replaces. */
  get matchedPrefix(): string | undefined {
    return this.matchedPath?.kind === "prefix" ? this.matchedPath.text : undefined;
  }

  get logFields(): ReadonlyMap<string, string | number | boolean> | undefined {
    return this.#logFields;
  }

  addLogField(name: string, value: string | number | boolean): void {
    (this.#logFields ??= new Map()).set(name, value);
  }

  /** Parameters of the query that policies have read credentials from, in lower case. */
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

  /** For those who look when all is over. */
  #answer({ status, headers, body }: Reply): Parameters<typeof responseRoot>[0] {
    const answer = { status, headers, trailers: this.replyTrailers };
    const { replyWatch: watch } = this;
    if (watch !== undefined) return { ...answer, body: watch.body, bodyPrefix: watch.prefix };
    if (body !== null && !Buffer.isBuffer(body)) return { ...answer, body: null, bodyPrefix: null };
    const whole = body ?? Buffer.alloc(0);
    const fits = whole.length <= this.responseLimitBytes;
    return { ...answer, body: fits ? whole : null, bodyPrefix: whole.subarray(0, this.responseLimitBytes) };
  }

  /** Copies the request body while it passes, where a report reads it. */
  watchRequest(): void {
    const body = this.requestBody;
    if (body === null || Buffer.isBuffer(body)) return;
    this.requestWatch = new WatchedBody(body, this.#requestLimit.bind(this));
    this.requestBody = this.requestWatch;
  }

  /** The same of the answer as it goes out. */
  watchReply(reply: Reply): void {
    const { body } = reply;
    if (body === null || Buffer.isBuffer(body)) return;
    this.replyWatch = new WatchedBody(body, this.#replyLimit.bind(this));
    reply.body = this.replyWatch;
  }

  /** The body of the answer as far as it was kept; undefined: it was not. */
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

  /** False when the data plane made the answer itself. */
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

  /** Gives up everything that is under way for this request. */
  abort(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#abortable?.abort(error);
    for (const target of this.#moreAbortables ?? []) target.abort(error);
  }

  /** True once the client went away or the deadline passed. */
  get aborted(): boolean {
    return this.#ended !== undefined;
  }

  async bufferRequestBody(limitBytes: number): Promise<Buffer | undefined> {
    const body = this.requestBody;
    if (body === null) return Buffer.alloc(0);
    if (Buffer.isBuffer(body)) return body.length <= limitBytes ? body : undefined;
    // An honest oversize is refused before a byte is read.
    if (this.contentLength !== undefined && this.contentLength > limitBytes) return undefined;
    const held = await holdStart(body, limitBytes, this);
    this.requestBody = held.complete ? held.start : held.body;
    return held.complete ? held.start : undefined;
  }

  /**
   * Holds the request body for expressions, once: forwarding is not affected by it.
   * A larger body goes on as a stream, and only its first bytes can be read.
   */
  async captureRequestBody(limitBytes: number): Promise<void> {
    const body = this.requestBody;
    if (body === null || Buffer.isBuffer(body) || (this.bodyPrefix?.length ?? -1) >= limitBytes) return;
    const held = await holdStart(body, limitBytes, this);
    this.requestBody = held.complete ? held.start : held.body;
    this.bodyPrefix = held.complete ? undefined : held.start.subarray(0, limitBytes);
  }

  onDone(callback: (outcome: Outcome) => void): void {
    (this.#done ??= []).push(callback);
  }

  /** Ends the exchange, once. */
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
