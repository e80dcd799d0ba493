/** Describes a finished request or connection: every field of every report is read from them. */
import type { Scope } from "../../../cel/scope.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { GuardEffect } from "../../exchange/guard-checks.ts";
import type { AgentInfo } from "./agent-info.ts";
import type { McpInfo } from "./mcp-info.ts";
import type { LlmInfo } from "./llm-info.ts";

export interface StreamInfo {
  /** The roots that expressions see at the end. */
  readonly scope: Scope;
  readonly listener: RoutedExchange["listener"];
  readonly route: RoutedExchange["route"];
  /** "address:port" of the last call, or the path of a Unix socket. */
  readonly endpoint: string | undefined;
  readonly client: { readonly address: string; readonly port: number };
  /** A counter within the process. */
  readonly connectionId: bigint;
  /** The first SPIFFE ID of the client certificate. */
  readonly spiffeId: string | undefined;
  /** SNI of the TLS handshake; undefined when there was none. */
  readonly serverName: string | undefined;
  /** Protocol of the backend. */
  readonly protocol: string | undefined;
  /** Text for operators: may contain details that the client did not receive. */
  readonly error: string | undefined;
  /** Reason of docs/reference/errors.md, `DirectResponse` or `ClientClosed`; undefined when the backend answered. */
  readonly reason: string | undefined;
  readonly durationMs: number;
  /** undefined for a TCP connection. */
  readonly http: HttpInfo | undefined;
}

export interface HttpInfo {
  /** `x-request-id` of the response. */
  readonly requestId: string;
  readonly method: string;
  /** The authority as received. */
  readonly host: string;
  /** Path and query as received. */
  readonly target: string;
  /** Query parameters, in lower case, that policies read credentials from. */
  readonly secretParameters: ReadonlySet<string>;
  /** "HTTP/1.1" or "HTTP/2" */
  readonly version: string;
  readonly status: number;
  readonly grpcStatus: number | undefined;
  /** Number of retries. */
  readonly retries: number;
  readonly jwtSubject: string | undefined;
  /** "address:port" that was chosen for a request to an InferencePool. */
  readonly pickedEndpoint: string | undefined;
  /** `spanId` is the request's own span; unset when it has none. */
  readonly trace: { readonly traceId: string; readonly spanId: string | undefined } | undefined;
  readonly llm: LlmInfo | undefined;
  /** The call of an A2A agent. */
  readonly agent: AgentInfo | undefined;
  /** The message of an MCP client. */
  readonly mcp: McpInfo | undefined;
  /** What prompt guards did; undefined when they let all text pass. */
  readonly guardEffect: GuardEffect | undefined;
  /** Fields that policies added to the log line. */
  readonly notes: ReadonlyMap<string, string | number | boolean> | undefined;
}
