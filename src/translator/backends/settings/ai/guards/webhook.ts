/** Translates a `webhook` guard, a service of the user's own. */
import { create } from "@bufbuild/protobuf";
import type { ForwardHeaderMatch, WebhookGuard } from "../../../../../../generated/types/guardrails.ts";
import {
  ValueMatchSchema,
  WebhookGuardSchema,
  type ValueMatch,
} from "../../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { phaseOfBackend } from "../../../../policies/shared/expression-phase.ts";
import { expressionMap } from "../../../../policies/shared/unit.ts";
import type { Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import type { GuardPart } from "./guard.ts";
import { translateVerdict } from "./service.ts";

export function translateWebhook(
  { backendRef, headers, forwardHeaderMatches = [], action, failureMode }: WebhookGuard,
  { services }: SettingsContext,
  report: Report,
): GuardPart {
  // An expression that does not compile removes its header.
  const context = { report: (path: string, message: string) => report(path, message, "warning") };
  // Headers of request and response guards run in the same phase.
  const expressions = expressionMap(headers, "headers", context, (path) =>
    phaseOfBackend(`ai.promptGuard.request[0].webhook.${path}`),
  );
  const value = create(WebhookGuardSchema, {
    service: services.resolve({ backendRef }, "", report),
    headers: Object.entries(expressions).map(([name, expression]) => ({ name, expression })),
    forwardHeaders: forwardHeaderMatches.map(translateMatch),
  });
  return { kind: { case: "webhook", value }, ...translateVerdict(action, failureMode) };
}

function translateMatch({ name, value, type }: ForwardHeaderMatch): ValueMatch {
  return create(ValueMatchSchema, {
    name,
    value: { case: type === "RegularExpression" ? "regex" : "exact", value },
  });
}
