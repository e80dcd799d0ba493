/** Translates a `moderation` guard, the Moderations API of OpenAI. */
import { create } from "@bufbuild/protobuf";
import type { ModerationGuard } from "../../../../../../generated/types/guardrails.ts";
import { ModerationGuardSchema } from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import type { GuardPart } from "./guard.ts";
import { translateServiceSettings, translateVerdict } from "./service.ts";

const DEFAULT_MODEL = "omni-moderation-latest";

export function translateModeration(
  { model, policies, action, failureMode }: ModerationGuard,
  context: SettingsContext,
  report: Report,
): GuardPart {
  const value = create(ModerationGuardSchema, {
    model: model ?? DEFAULT_MODEL,
    settings: translateServiceSettings(policies, context, report),
  });
  return { kind: { case: "moderation", value }, ...translateVerdict(action, failureMode) };
}
