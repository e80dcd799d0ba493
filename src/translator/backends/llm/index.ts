/**
 * The table of provider keys: the name of each in telemetry and costs, and the translator of its settings. `llm.ts`
 * uses it.
 */
import type { LLMProvider, ModelSettings } from "../../../../generated/types/llm.ts";
import { translateAzureEndpoint, translateAzureResource } from "./azure.ts";
import { translateBedrock } from "./bedrock.ts";
import { translateCustom } from "./custom.ts";
import type { ProviderContext, ProviderKey, ProviderPart, ProviderTranslator } from "./provider.ts";
import { translateVertex } from "./vertex.ts";

/** A key that is added to the schema does not compile without an entry here. */
const PROVIDERS: { readonly [K in ProviderKey]-?: ProviderTranslator<K> } = {
  llma: withModel("openai"),
  llmb: withModel("copilot"),
  llmc: translateAzureEndpoint,
  llmd: translateAzureResource,
  llme: withModel("anthropic"),
  llmf: withModel("gcp.gemini"),
  llmg: translateVertex,
  llmh: translateBedrock,
  custom: translateCustom,
};

/** Translates the one key that is set. @returns undefined after an error was reported */
export function translateProviderKey(
  spec: LLMProvider,
  context: ProviderContext,
): (ProviderPart & { readonly key: string }) | undefined {
  // Object.keys loses the literal types of the table's keys.
  const key = (Object.keys(PROVIDERS) as ProviderKey[]).find((candidate) => spec[candidate] !== undefined);
  if (key === undefined) {
    context.error("", "a provider key is required");
    return undefined;
  }
  // Each entry translates the settings stored under its own key.
  const translate = PROVIDERS[key] as (settings: unknown, context: ProviderContext) => ProviderPart | undefined;
  const part = translate(spec[key], context);
  return part === undefined ? undefined : { ...part, key };
}

/** Returns the translator of a key whose only setting is the model. */
function withModel(identity: string): (settings: ModelSettings) => ProviderPart {
  return ({ model }) => ({ identity, model: model ?? "" });
}
