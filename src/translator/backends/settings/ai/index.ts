/**
 * Translates `ai` of a backend block: the table of its fields, with one translator each. `../settings.ts` uses it for
 * GwPolicies, GwBackends and providers alike.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendAI } from "../../../../../generated/types/ai.ts";
import { AiPolicySchema, type AiPolicy } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { within, type Report } from "../../../shared/report.ts";
import type { SettingsContext } from "../context.ts";
import type { AiFields, AiFieldTranslator } from "./ai-field.ts";
import { translateDefaults, translateOverrides, translateTransformations } from "./body-fields.ts";
import { translatePromptGuard } from "./guards/prompt-guard.ts";
import { translateModelAliases } from "./model-aliases.ts";
import { translatePrompt } from "./prompt.ts";
import { translatePromptCaching } from "./prompt-caching.ts";
import { translateRoutes } from "./routes.ts";

/** A field that is added to the schema does not compile without an entry here. */
const FIELDS: { readonly [F in keyof Required<BackendAI>]: AiFieldTranslator<F> } = {
  prompt: translatePrompt,
  promptEnrichment: translatePrompt,
  promptGuard: translatePromptGuard,
  defaults: translateDefaults,
  overrides: translateOverrides,
  transformations: translateTransformations,
  modelAliases: translateModelAliases,
  promptCaching: translatePromptCaching,
  routes: translateRoutes,
};

/**
 * Fields that the data plane serves. Any other field is not read here, so that its object reports it; one that guards
 * closes what it guards.
 */
const SERVED: ReadonlySet<string> = new Set<keyof BackendAI>([
  "prompt",
  "promptEnrichment",
  "promptGuard",
  "defaults",
  "overrides",
  "transformations",
  "modelAliases",
  "promptCaching",
  "routes",
]);

/** @returns undefined when the block sets no field that is served */
export function translateAi(block: BackendAI, context: SettingsContext, report: Report): AiPolicy | undefined {
  const fields: AiFields = {};
  for (const [name, translate] of Object.entries(FIELDS)) {
    // Each entry translates the value stored under its own name.
    const value = SERVED.has(name) ? block[name as keyof BackendAI] : undefined;
    const into = within(report, name);
    if (value !== undefined)
      Object.assign(fields, (translate as AiFieldTranslator<never>)(value as never, context, into));
  }
  return Object.keys(fields).length === 0 ? undefined : create(AiPolicySchema, fields);
}
