/**
 * Compiles the `ai` block of a provider in one place of the configuration. Every member is undefined where the block
 * does not set its field, so that a request pays only for what is configured. The LLM handler applies the members in
 * the order in which they stand here.
 */
import type { AiPolicy } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendDeps } from "../../backends/handler.ts";
import { BodyFields } from "./body-fields.ts";
import { compileModelAliases, type RenameModel } from "./model-aliases.ts";
import { compilePrompt, type AddPrompt } from "./prompt.ts";
import { compilePromptCaching, type MarkCache } from "./prompt-caching.ts";
import { compileRoutes, type FindRouteType } from "./routes.ts";

export interface AiPolicies {
  /** Returns the format of a request by its path. */
  readonly findRouteType: FindRouteType | undefined;
  /** `transformations`, `overrides` and `defaults`. */
  readonly fields: BodyFields | undefined;
  readonly renameModel: RenameModel | undefined;
  readonly addPrompt: AddPrompt | undefined;
  /** `promptCaching`, applied to the conversation that is printed for the provider. */
  readonly markCache: MarkCache | undefined;
  /** Fields of the body in the provider's format, computed last. */
  readonly finalFields: BodyFields | undefined;
}

const NONE: AiPolicies = {
  findRouteType: undefined,
  fields: undefined,
  renameModel: undefined,
  addPrompt: undefined,
  markCache: undefined,
  finalFields: undefined,
};

export function compileAiPolicies(
  policy: AiPolicy | undefined,
  { expression }: Pick<BackendDeps, "expression">,
): AiPolicies {
  if (policy === undefined) return NONE;
  const { routes, overrides, transformations, defaults, modelAliases, prompt, promptCaching, finalTransformations } =
    policy;
  const setsFields = overrides.length + transformations.length + defaults.length > 0;
  return {
    findRouteType: Object.keys(routes).length === 0 ? undefined : compileRoutes(routes),
    fields: setsFields ? new BodyFields(policy, expression) : undefined,
    renameModel: Object.keys(modelAliases).length === 0 ? undefined : compileModelAliases(modelAliases),
    addPrompt: prompt === undefined ? undefined : compilePrompt(prompt),
    markCache: promptCaching === undefined ? undefined : compilePromptCaching(promptCaching),
    finalFields:
      finalTransformations.length === 0
        ? undefined
        : new BodyFields({ overrides: [], transformations: finalTransformations, defaults: [] }, expression),
  };
}
