/** Describes a finished call of an A2A agent, for log fields and the metric of calls. */
import type { AgentSample } from "../../../telemetry/metrics.ts";
import { KNOWN_METHODS } from "../../a2a/methods.ts";
import type { AgentCallInfo, AgentResult } from "../../exchange/agent-call-info.ts";

/** Values of the method that the gateway itself gives. */
const OWN_METHODS: ReadonlySet<string> = new Set(["unknown", "batch"]);

export class AgentInfo {
  readonly method: string;
  readonly version: string | undefined;
  readonly result: AgentResult;

  /** @param grpcStatus tells the outcome of a call in the gRPC binding */
  constructor({ method, version, result }: AgentCallInfo, grpcStatus: number | undefined) {
    this.method = method;
    this.version = version;
    this.result = grpcStatus === undefined ? result : { ...result, outcome: grpcStatus === 0 ? "success" : "error" };
  }

  get sample(): AgentSample {
    const isBounded = KNOWN_METHODS.has(this.method) || OWN_METHODS.has(this.method);
    return { method: isBounded ? this.method : "other", outcome: this.result.outcome };
  }
}
