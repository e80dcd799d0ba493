/** Translates a `guardrailsB` guard, the API of Google Model Armor. */
import { create } from "@bufbuild/protobuf";
import type { GuardrailsB } from "../../../../../../generated/types/guardrails.ts";
import { ModelArmorGuardSchema } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import type { GuardPart } from "./guard.ts";
import { translateServiceSettings, translateVerdict } from "./service.ts";

const DEFAULT_LOCATION = "us-central1";

export function translateModelArmor(
  { templateId, projectId, location, policies, action, failureMode }: GuardrailsB,
  context: SettingsContext,
  report: Report,
): GuardPart {
  const value = create(ModelArmorGuardSchema, {
    template: templateId,
    project: projectId,
    location: location ?? DEFAULT_LOCATION,
    settings: translateServiceSettings(policies, context, report),
  });
  return { kind: { case: "guardrailsB", value }, ...translateVerdict(action, failureMode) };
}
