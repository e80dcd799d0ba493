/** What is known of a request when its last byte has left. One record feeds the access log and the metrics. */
export interface RequestRecord {
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly method: string;
  readonly host: string;
  /** Without the query: it may carry credentials. */
  readonly path: string;
  readonly version: string;
  readonly status: number;
  /** Access-log reason of the error table; "Upstream" or "DirectResponse" otherwise. */
  readonly reason: string;
  /** For people who operate the gateway; "" when nothing went wrong. Never sent to clients. */
  readonly detail: string;
  /** "namespace/name" */
  readonly gateway: string;
  readonly listener: string;
  /** "namespace/name", "" when none matched. */
  readonly route: string;
  readonly rule: string;
  readonly backend: string;
  readonly clientAddress: string;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly clientGone: boolean;
  readonly llm: LlmRecord | undefined;
}

export interface LlmRecord {
  readonly provider: string;
  readonly requestModel: string;
  readonly responseModel: string | undefined;
  readonly streaming: boolean;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly totalTokens: number | undefined;
}
