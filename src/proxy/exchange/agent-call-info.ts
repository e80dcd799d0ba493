/** What reports read about a call of an A2A agent; the handler of agents supplies it. */

export interface AgentCallInfo {
  /** Name in JSON-RPC or gRPC, `batch`, or `unknown`. */
  readonly method: string;
  /** `A2A-Version` of the request. */
  readonly version: string | undefined;
  readonly result: AgentResult;
}

export interface AgentResult {
  readonly outcome: "success" | "error" | "unknown";
  /** `error.code` of the answer. */
  readonly errorCode: number | undefined;
  /** `task`, `message`, `status-update` or `artifact-update`. */
  readonly kind: string | undefined;
  readonly state: string | undefined;
  readonly contextId: string | undefined;
}
