/** Translates a `guardrailsA` guard, the ApplyGuardrail API of Bedrock. */
import { create } from "@bufbuild/protobuf";
import type { GuardrailsA } from "../../../../../../generated/types/guardrails.ts";
import { BedrockGuardrailsGuardSchema } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import type { GuardPart } from "./guard.ts";
import { translateServiceSettings, translateVerdict } from "./service.ts";

export function translateBedrockGuardrails(
  { identifier, version, region, policies, action, failureMode }: GuardrailsA,
  context: SettingsContext,
  report: Report,
): GuardPart {
  const value = create(BedrockGuardrailsGuardSchema, {
    identifier,
    version,
    region,
    settings: translateServiceSettings(policies, context, report),
  });
  return { kind: { case: "guardrailsA", value }, ...translateVerdict(action, failureMode) };
}
