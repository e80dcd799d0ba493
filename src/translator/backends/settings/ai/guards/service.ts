/** Translates what guards that ask a service have in common: action, failure mode and the settings of the connection. */
import { create } from "@bufbuild/protobuf";
import type { BackendSimple } from "../../../../../../generated/types/backend-policies.ts";
import type { WebhookGuard } from "../../../../../../generated/types/guardrails.ts";
import {
  BackendSettingsSchema,
  BackendTlsSchema,
  GuardAction,
  type BackendSettings,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../../../shared/report.ts";
import { translateConnection } from "../../connection.ts";
import type { SettingsContext } from "../../context.ts";
import type { GuardPart } from "./guard.ts";

export function translateVerdict(
  action: WebhookGuard["action"],
  failureMode: WebhookGuard["failureMode"],
): Pick<GuardPart, "action" | "failOpen"> {
  return {
    action: action === "Audit" ? GuardAction.AUDIT : GuardAction.REJECT,
    failOpen: failureMode === "FailOpen",
  };
}

/** Translates `policies` of a guard. Without `tls` the service is reached over TLS with the system's roots. */
export function translateServiceSettings(
  policies: BackendSimple = {},
  context: SettingsContext,
  report: Report,
): BackendSettings {
  const settings = translateConnection(policies, context, within(report, "policies"));
  return create(BackendSettingsSchema, { tls: create(BackendTlsSchema), ...settings });
}
