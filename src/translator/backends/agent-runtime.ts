/**
 * Translates `cloudA.agentRuntime` of a GwBackend: an agent that is hosted by Bedrock AgentCore. Host and region follow
 * from its ARN. `translate.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { AgentRuntime as ApiRuntime } from "../../../generated/types/backend.ts";
import {
  AgentRuntimeBackendSchema,
  type AgentRuntimeBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../shared/report.ts";

/** Suffix of the names of services, by partition. */
const DNS_SUFFIXES: ReadonlyMap<string, string> = new Map([
  ["aws", "amazonaws.com"],
  ["aws-us-gov", "amazonaws.com"],
  ["aws-cn", "amazonaws.com.cn"],
]);

/** The same form as the rule of the schema: region and partition become parts of a host name. */
const ARN = /^arn:([a-z-]+):bedrock-agentcore:([a-z0-9-]+):\d{12}:runtime\/[!-~]+$/;

const EXAMPLE = "arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/weather-9";

/** @returns undefined when the ARN is not that of a runtime, which is reported */
export function translateAgentRuntime(runtime: ApiRuntime, report: Report): AgentRuntimeBackend | undefined {
  const { agentRuntimeArn: arn, qualifier = "" } = runtime;
  const [, partition = "", region = ""] = ARN.exec(arn) ?? [];
  const suffix = DNS_SUFFIXES.get(partition);
  if (suffix === undefined) {
    report("agentRuntime.agentRuntimeArn", `must be the ARN of an agent runtime, such as ${EXAMPLE}`);
    return undefined;
  }
  return create(AgentRuntimeBackendSchema, { host: `bedrock-agentcore.${region}.${suffix}`, region, arn, qualifier });
}
