/**
 * The state of one request on its way through the data plane, as four interfaces: `Exchange` for policies,
 * `RoutedExchange` for routing and backends, `ReportedExchange` for logs, metrics and traces, `Reply` for the response.
 * Policies read and edit the request here and wrap `next()` to edit the response. All configuration is compiled into
 * the chain beforehand; a request looks up none of it.
 */
import type { Duplex } from "node:stream";
import type { Scope } from "../../cel/scope.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { OutboundKind } from "../observability/tracing/outbound.ts";
import type { RequestTrace } from "../observability/tracing/request-trace.ts";
import type { AgentCallInfo } from "./agent-call-info.ts";
import type { DebugTrace } from "./debug-trace.ts";
import type { McpCallInfo } from "./mcp-call-info.ts";
import type { Body } from "./body.ts";
import type { ProxyError } from "./errors.ts";
import type { GuardChecks } from "./guard-checks.ts";

/** The part of a request that a policy may read and change. */
export interface Exchange extends Scope {
  /** performance.now() at the last byte of the request head. */
  readonly startedAtMs: number;
  /** Wall-clock time of the same moment, for logs and `request.startTime`. */
  readonly startedAt: Date;
  readonly source: { readonly address: string; readonly port: number };
  method: string;
  /** Path and query as they will be sent, starting with "/". */
  target: string;
  /** Authority, with the port when one was sent. */
  host: string;
  /**
   * Selects the Host that is sent: "auto" for the name of the destination, "keep" for `host`, undefined for the default
   * of the backend.
   */
  hostChoice: "auto" | "keep" | undefined;
  /**
   * Scheme that is reported to the upstream. A change affects neither the response to the client nor the connection to
   * the upstream.
   */
  scheme: "http" | "https";
  /** Scheme of the connection that the client used. */
  readonly originalScheme: "http" | "https";
  readonly version: string;
  readonly requestHeaders: HeaderList;
  /**
   * Values of Proxy-Authorization. They authenticate to this proxy (RFC 9110 §11.7.2), so they are kept apart from the
   * forwarded headers.
   */
  readonly proxyAuthorization: readonly string[] | undefined;
  /** Value of Origin that a `cors` policy has allowed; unset when none has. */
  allowedOrigin?: string | undefined;
  /** The path and query that the client sent, before any rewrite. */
  readonly originalTarget: string;
  /** The authority that the client sent, before any rewrite. */
  readonly originalHost: string;
  /** Set when the request is traced: calls made for it propagate the trace context and record a span. */
  readonly trace: RequestTrace | undefined;
  /** Set when an operator follows this request (`/debug/trace`). */
  readonly debug?: DebugTrace | undefined;
  /** Bytes of each body that may be held in memory: the setting of the Gateway, or of a buffer policy that has run. */
  requestLimitBytes: number;
  responseLimitBytes: number;
  /** The request body; a policy that buffers it stores the Buffer here. */
  requestBody: Body;
  /**
   * Reads the whole request body once and keeps it for the upstream.
   * @returns undefined when it is larger than `limitBytes`; the stream then continues unchanged
   */
  bufferRequestBody(limitBytes: number): Promise<Buffer | undefined>;
  /** performance.now() at which the request must have ended; undefined when it has no limit. */
  deadlineAtMs: number | undefined;
  /** Decides whether and when a failed call is repeated; undefined when it never is. */
  retry: RetryPlan | undefined;
  /**
   * Headers merged into the response last, error replies included (rate limits use this). An entry is skipped when the
   * response already has a field of that name.
   */
  readonly queuedHeaders: HeaderList;
  /** Sets a root that policies create for expressions: "apiKey", "jwt", "metadata", "llm", … */
  setRoot(name: string, value: unknown): void;
  /** Token budgets that rate limit policies add and the LLM backend charges. */
  readonly tokenGates: TokenGate[];
  /** Adds a field to the access log line. Must never be a secret. */
  addLogField(name: string, value: string | number | boolean): void;
  /** Marks a query parameter that holds a credential: logs and spans show its name without its value. */
  addSecretParameter(name: string): void;
  /** Aborts `target` when the client goes away or the deadline passes; at once if that has already happened. */
  onAbort(target: Abortable): void;
  /** Runs `callback` once, when the last byte of the response has left or the exchange was given up. */
  onDone(callback: (outcome: Outcome) => void): void;
}

/**
 * The further state that routing, backends and reports share: where the request was sent and how that went. Policies do
 * not see it, because their effect must not depend on it.
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
    | {
        readonly namespace: string;
        readonly name: string;
        readonly kind: string;
        readonly rule: string;
        /** Whether the listener or the route names the hosts that it serves. */
        readonly namesHost?: boolean;
      }
    | undefined;
  /** Set when a backend is chosen, before any policy of the backend runs. */
  backend: { readonly name: string; readonly type: string; readonly protocol: string } | undefined;
  /**
   * Name of the format that the configuration gives requests of models on this path; unset where the path itself tells.
   * Errors are printed in it.
   */
  clientFormat?: string | undefined;
  /** "address:port" of the last call, for the log. */
  endpoint: string | undefined;
  /** "address:port" that an endpoint picker has chosen, or own balancing in its place; unset without an InferencePool. */
  pickedEndpoint?: string | undefined;
  /** performance.now() at the first call of a backend, and at the head of the response that was returned. */
  calledAtMs: number | undefined;
  answeredAtMs: number | undefined;
  /**
   * CDN-Loop as received, values of several fields joined; undefined when the request had none. Every request that
   * leaves on behalf of this one carries it with one more entry (cdn-loop.ts), whatever policies did to the field among
   * `requestHeaders`.
   */
  readonly cdnLoop: string | undefined;
  /** Kind of its calls to backends: a mirrored request is an exchange of its own. */
  readonly outboundKind: Exclude<OutboundKind, "Policy">;
  /** The Upgrade protocols that the client offers; unset when it offers none (RFC 9110 §7.8). */
  readonly upgrade?: string | undefined;
  /** True for CONNECT: a successful response becomes a tunnel. */
  readonly connect: boolean;
  /** Limit of one call to a backend, from the rule; undefined when there is none. */
  backendTimeoutMs: number | undefined;
  /**
   * Endpoints that were called already, compared by identity; undefined when the request makes at most one attempt.
   */
  tried: object[] | undefined;
  /** The call in progress, or the call whose response was returned. */
  attempt: { discard(): void } | undefined;
  /** What prompt guards did; undefined when none has run. */
  guardChecks?: GuardChecks | undefined;
  /** The call of an A2A agent; undefined for other requests. */
  agentCall?: AgentCallInfo | undefined;
  /** The message of an MCP client; undefined for other requests. */
  mcpCall?: McpCallInfo | undefined;
  /** Trailers of the response as sent; undefined before they are sent, and when there are none. */
  replyTrailers: readonly string[] | undefined;
  /** The path prefix that the rule matched, which ReplacePrefixMatch replaces; undefined for other matches. */
  readonly matchedPrefix: string | undefined;
  /** What ReplacePrefixMatch has put in its place; undefined when the rule does not rewrite the prefix. */
  replacementPrefix?: string | undefined;
}

/** What reports read of a finished request beyond its routing: how it was answered, and what policies noted. */
export interface ReportedExchange extends RoutedExchange {
  readonly source: Connection;
  readonly requestId: string;
  /** SNI of the TLS handshake, "" when the client sent none; undefined for plain text. */
  readonly serverName: string | undefined;
  /** Path match of the chosen rule. */
  readonly matchedPath: MatchedPath | undefined;
  /** The last error that the data plane answered with. */
  readonly error: ProxyError | undefined;
  /** The policy and field that raised this error; undefined when it came from elsewhere. */
  readonly errorOrigin: string | undefined;
  /** The response as sent, with the edits of all policies. */
  readonly reply: Reply | undefined;
  /** The queued headers; undefined when no policy queued one. */
  readonly queued: HeaderList | undefined;
  /** The start of a request body that was streamed, up to the limit; undefined when it was not kept. */
  readonly keptRequest: Buffer | undefined;
  /** The start of the response body, up to the limit; undefined when it was not kept. */
  readonly keptReply: Buffer | undefined;
  /** False when the data plane itself made the response. */
  readonly answeredByUpstream: boolean;
  /** performance.now() at the end of the exchange. */
  readonly endedAtMs: number | undefined;
  readonly logFields: ReadonlyMap<string, string | number | boolean> | undefined;
  /** Query parameters, in lower case, that policies have read credentials from. */
  readonly secretParameters: ReadonlySet<string> | undefined;
}

/** What reports read of a finished TCP connection. */
export interface ReportedConnection extends Pick<RoutedExchange, "listener" | "route" | "backend" | "endpoint"> {
  readonly peer: Connection;
  readonly startedAtMs: number;
  /** Server name of the TLS handshake in lower case, "" for none. */
  readonly serverName: string;
  /** Why the session was refused, or why it broke off. */
  readonly error: ProxyError | undefined;
  /** True when the client left before the backend was connected. */
  readonly clientGone: boolean;
}

export interface MatchedPath {
  readonly kind: "exact" | "prefix" | "regex";
  /** A prefix has no trailing slash; "" matches every path. */
  readonly text: string;
}

/** The connection that a request came on, with the attributes that expressions see of it. */
export interface Connection extends Scope {
  readonly address: string;
  readonly port: number;
}

/** Decides whether a call to a backend is repeated (GEP-1731). */
export interface RetryPlan {
  /** Further attempts after the first. */
  readonly attempts: number;
  /** Wait before each further attempt. */
  readonly backoffMs: number;
  /** Returns true when the response justifies another attempt. */
  wants(reply: Reply): Promise<boolean>;
}

/** Work that can be given up before it is complete. */
export interface Abortable {
  /** @param error that the work ends with; a ProxyError when the deadline passed */
  abort(error: Error): void;
}

/** A budget of LLM tokens that a request is charged against. */
export interface TokenGate {
  /**
   * Called when the LLM request has been parsed.
   * @throws ProxyError rate_limited when the budget is spent, rate_limit_failed when it cannot be checked
   */
  admit(): MaybePromise<void>;
  /** Called once with the actual usage, even if the client has gone. */
  settle(totalTokens: number): void;
}

export interface Outcome {
  readonly status: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly durationMs: number;
  /** Code of the ProxyError; undefined when an upstream or a policy answered. */
  readonly error: string | undefined;
  readonly clientGone: boolean;
}

/** A connection to an upstream that has left HTTP. Its receiver must either relay it to the client or destroy it. */
export interface Tunnel {
  /** Protocol that the upstream switched to; "" for CONNECT. */
  readonly protocol: string;
  /** Paused until the relay reads from it. */
  readonly stream: Duplex;
}

/** The response that returns to the client. Policies may still edit its headers on the way up. */
export interface Reply {
  status: number;
  readonly headers: HeaderList;
  body: Body;
  /**
   * Set with status 101, and with a successful response to CONNECT: the connection stops speaking HTTP after this head.
   */
  readonly tunnel?: Tunnel | undefined;
  /** True when an upstream made the response: some policies leave replies of the proxy alone. */
  readonly upstream: boolean;
}

export type MaybePromise<T> = T | Promise<T>;
export type Next = () => MaybePromise<Reply>;
