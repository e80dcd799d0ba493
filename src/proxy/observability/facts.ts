/** What is known of a request or of a connection when it is over: what the fields of every report are read from. */
import type { Scope } from "../../cel/scope.ts";
import type { RoutedExchange } from "../pipeline/exchange.ts";
import type { LlmFacts } from "./llm-facts.ts";

export interface Facts {
  /** What expressions see at the end. */
  readonly scope: Scope;
  readonly listener: RoutedExchange["listener"];
  readonly route: RoutedExchange["route"];
  /** "address:port" that was called, or the path of a socket. */
  readonly endpoint: string | undefined;
  readonly client: { readonly address: string; readonly port: number };
  /** Counted within the process. */
  readonly connectionId: bigint;
  /** The first SPIFFE id of the client's certificate. */
  readonly spiffeId: string | undefined;
  /** As asked for in the TLS handshake; undefined: none, or plain text. */
  readonly serverName: string | undefined;
  /** Of the backend. */
  readonly protocol: string | undefined;
  /** For operators: may say more than the client was told. */
  readonly error: string | undefined;
  /** Of observability.md 1.3; undefined: the backend answered. */
  readonly reason: string | undefined;
  readonly durationMs: number;
  /** undefined: a connection of bytes. */
  readonly http: HttpFacts | undefined;
}

export interface HttpFacts {
  /** The `x-request-id` of the answer. */
  readonly requestId: string;
  readonly method: string;
  /** The authority as received. */
  readonly host: string;
  /** Path and query as received. */
  readonly target: string;
  /** Parameters of the query, in lower case, from which policies read credentials. */
  readonly secretParameters: ReadonlySet<string>;
  /** "HTTP/1.1", "HTTP/2" */
  readonly version: string;
  readonly status: number;
  readonly grpcStatus: number | undefined;
  /** How often it was tried again. */
  readonly retries: number;
  readonly jwtSubject: string | undefined;
  /** `spanId` is that of the request's own span, and unset where it has none. */
  readonly trace: { readonly traceId: string; readonly spanId: string | undefined } | undefined;
  readonly llm: LlmFacts | undefined;
  /** What policies noted. */
  readonly notes: ReadonlyMap<string, string | number | boolean> | undefined;
}
