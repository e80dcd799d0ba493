/** Translates `llmh`, a region of Amazon Bedrock. `index.ts` uses it. */
import { create } from "@bufbuild/protobuf";
import type { RegionSettings } from "../../../../generated/types/llm.ts";
import { BedrockEndpoint, BedrockServiceSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ProviderPart } from "./provider.ts";

const DEFAULT_REGION = "us-east-1";

const ENDPOINTS: Readonly<Record<NonNullable<RegionSettings["endpointPreference"]>, BedrockEndpoint>> = {
  RuntimePreferred: BedrockEndpoint.RUNTIME_PREFERRED,
  AltPreferred: BedrockEndpoint.ALT_PREFERRED,
  RuntimeOnly: BedrockEndpoint.RUNTIME_ONLY,
  AltOnly: BedrockEndpoint.ALT_ONLY,
};

export function translateBedrock({ model, region, guardrail, endpointPreference }: RegionSettings): ProviderPart {
  const value = create(BedrockServiceSchema, {
    region: region ?? DEFAULT_REGION,
    ...(guardrail === undefined ? {} : { guardrail: { identifier: guardrail.identifier, version: guardrail.version } }),
    endpoint: ENDPOINTS[endpointPreference ?? "RuntimePreferred"],
  });
  return { identity: "aws.bedrock", model: model ?? "", service: { case: "bedrock", value } };
}
