/**
 * The state of one request on its way through the data plane. In: what arrived. Out: a Reply. Policies read and edit
 * the request side here and wrap `next()` for the response side; nobody walks configuration during a request.
 */
import type { Duplex } from "node:stream";
import type { Scope } from "../../cel/scope.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { BalancedEndpoint } from "../balancing/pick.ts";
import type { OutboundKind } from "../observability/outbound.ts";
import type { RequestTrace } from "../observability/tracing/request-trace.ts";
import type { Body } from "./body.ts";

/** What a policy may read and change of a request. */
export interface Exchange extends Scope {
  /** performance.now() at the last byte of the request head. */
  readonly startedAtMs: number;
  /** Wall clock of the same moment, for logs and `request.startTime`. */
  readonly startedAt: Date;
  readonly source: { readonly address: string; readonly port: number };
  method: string;
  /** Path and query as they will be sent, starting with "/". */
  target: string;
  /** Authority with the port when one was sent. */
  host: string;
  /** What is sent as Host: the destination's name, `host` as it stands, or whatever suits the backend. */
  hostChoice: "auto" | "keep" | undefined;
  /** As it will be said to be; a change decides neither how the client is answered nor how the upstream is reached. */
  scheme: "http" | "https";
  /** How the client came. */
  readonly originalScheme: "http" | "https";
  readonly version: string;
  readonly requestHeaders: HeaderList;
  /** Values of Proxy-Authorization: meant for us, so they are kept apart from what is forwarded. */
  readonly proxyAuthorization: readonly string[] | undefined;
  /** The path and query that the client sent, before any rewrite. */
  readonly originalTarget: string;
  /** The authority that the client asked for. */
  readonly originalHost: string;
  /** Set while it is traced: whoever is called for it is told, and a span is kept of the call. */
  readonly trace: RequestTrace | undefined;
  /** Bytes of each body that whoever reads it may hold: those of the Gateway, or of a buffer policy that has run. */
  requestLimitBytes: number;
  responseLimitBytes: number;
  /** The request body; a policy that buffers replaces it by the Buffer. */
  requestBody: Body;
  /**
   * Reads the whole request body once and keeps it for the upstream.
   * @returns undefined when it is larger than `limitBytes`; the stream then goes on untouched.
   */
  bufferRequestBody(limitBytes: number): Promise<Buffer | undefined>;
  /** performance.now() at which the request must be over; undefined: no limit. */
  deadlineAtMs: number | undefined;
  /** Whether and when a failed call is made again; undefined: never. */
  retry: RetryPlan | undefined;
  /** Merged into the answer last, also into errors (rate-limit headers). An entry is left out if the answer has the name. */
  readonly queuedHeaders: HeaderList;
  /** Roots that policies create for expressions: "apiKey", "jwt", "metadata", "llm", … */
  setRoot(name: string, value: unknown): void;
  /** Gates for token budgets, filled by rate limiting and driven by the LLM backend. */
  readonly tokenGates: TokenGate[];
  /** One more field of the access-log line. Never a secret. */
  addLogField(name: string, value: string | number | boolean): void;
  /** A parameter of the query that holds a credential: reports show its name alone. */
  addSecretParameter(name: string): void;
  /** Stops work in progress when the client goes away or the deadline passes; at once if that has happened. */
  onAbort(target: Abortable): void;
  /** Runs once, when the last byte of the answer left or the exchange was given up. */
  onDone(callback: (outcome: Outcome) => void): void;
}

/**
 * What routing, backends and reports know of the request besides: where it was sent, and how that went. Policies do not see
 * it, because what they do must not depend on it.
 */
export interface RoutedExchange extends Exchange {
  readonly listener: {
    readonly bind: string;
    readonly gateway: string;
    readonly namespace: string;
    readonly name: string;
  };
  /** Set by the router. */
  route:
    | { readonly namespace: string; readonly name: string; readonly kind: string; readonly rule: string }
    | undefined;
  /** Set when a backend was chosen, before any backend policy runs. */
  backend: { readonly name: string; readonly type: string; readonly protocol: string } | undefined;
  /** "address:port" that was called last, for the log. */
  endpoint: string | undefined;
  /** performance.now() at the first call of a backend, and at the head of the answer that counts. */
  calledAtMs: number | undefined;
  answeredAtMs: number | undefined;
  /**
   * CDN-Loop as it arrived, the values of several fields joined; undefined: there was none. What leaves for this request
   * carries it with one entry more (cdn-loop.ts), whatever policies have made of the field among `requestHeaders`.
   */
  readonly cdnLoop: string | undefined;
  /** What its calls of backends are: a mirrored request is an exchange of its own. */
  readonly outboundKind: Exclude<OutboundKind, "Policy">;
  /** The protocols that the client wants to go on with, as it named them; unset: none. */
  readonly upgrade?: string | undefined;
  /** The client asked for a tunnel (CONNECT): an answer of success is one, and nothing else. */
  readonly connect: boolean;
  /** Limit of one call to a backend, from the rule; undefined: none. */
  backendTimeoutMs: number | undefined;
  /** Members that were called already; undefined: nobody has to know, because there is one call at most. */
  tried: BalancedEndpoint[] | undefined;
  /** The call that is under way, or the one whose answer counts. */
  attempt: { discard(): void } | undefined;
  /** Those of the answer as it went out; undefined: none, or not yet. */
  replyTrailers: readonly string[] | undefined;
  /** The prefix that the rule matched, which a rewrite replaces; undefined when it matched otherwise. */
  readonly matchedPrefix: string | undefined;
}

/** When a call to a backend is made again. */
export interface RetryPlan {
  /** Further attempts after the first. */
  readonly attempts: number;
  /** Between attempts. */
  readonly backoffMs: number;
  /** Whether an answer is worth another attempt. */
  wants(reply: Reply): Promise<boolean>;
}

/** Work that can be given up half-way. */
export interface Abortable {
  /** @param error what the work then ends with; a ProxyError when the deadline passed */
  abort(error: Error): void;
}

/** A budget of LLM tokens that a request is charged against. */
export interface TokenGate {
  /** Called when the LLM request is known. @throws ProxyError rate_limited when nothing is left, rate_limit_failed */
  admit(): MaybePromise<void>;
  /** Called once with the real usage, also when the client has gone. */
  settle(totalTokens: number): void;
}

export interface Outcome {
  readonly status: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly durationMs: number;
  /** ProxyError code; undefined when the upstream or a policy answered. */
  readonly error: string | undefined;
  readonly clientGone: boolean;
}

/** The connection to an upstream that has left HTTP. Whoever does not join it with the client's destroys it. */
export interface Tunnel {
  /** As the upstream named it; "" for the bytes of CONNECT. */
  readonly protocol: string;
  /** Paused. */
  readonly stream: Duplex;
}

/** What goes back to the client. Headers may still be edited on the way out. */
export interface Reply {
  status: number;
  readonly headers: HeaderList;
  body: Body;
  /** Set with status 101, or 200 to CONNECT: what follows is no HTTP any more. */
  readonly tunnel?: Tunnel | undefined;
  /** True when an upstream made it: some policies leave our own answers alone. */
  readonly upstream: boolean;
}

export type MaybePromise<T> = T | Promise<T>;
export type Next = () => MaybePromise<Reply>;
