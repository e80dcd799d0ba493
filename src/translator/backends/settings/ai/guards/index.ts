/** The table of guard kinds, with one translator each. `prompt-guard.ts` uses it. */
import type { RequestGuard } from "../../../../../../generated/types/guardrails.ts";
import { within, type Report } from "../../../../shared/report.ts";
import type { SettingsContext } from "../../context.ts";
import type { GuardKind, GuardPart, GuardTranslator } from "./guard.ts";
import { translateBedrockGuardrails } from "./guardrails-a.ts";
import { translateModelArmor } from "./guardrails-b.ts";
import { translateModeration } from "./moderation.ts";
import { translateRegex } from "./regex.ts";
import { translateWebhook } from "./webhook.ts";

const KINDS: { readonly [K in GuardKind]: GuardTranslator<K> } = {
  regex: translateRegex,
  webhook: translateWebhook,
  moderation: translateModeration,
  guardrailsA: translateBedrockGuardrails,
  guardrailsB: translateModelArmor,
};

/** Translates the one kind that is set. @returns a part without a kind, which the data plane refuses, when none is */
export function translateKind(guard: RequestGuard, context: SettingsContext, report: Report): GuardPart {
  // Object.keys loses the literal types of the table's keys.
  const kind = (Object.keys(KINDS) as GuardKind[]).find((candidate) => candidate in guard);
  if (kind === undefined) return {};
  // Each entry translates the block stored under its own name.
  return (KINDS[kind] as GuardTranslator<never>)(guard[kind] as never, context, within(report, kind));
}
