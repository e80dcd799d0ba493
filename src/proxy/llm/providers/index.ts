/** The table of providers, by the key of the schema. */
import { anthropic } from "./anthropic/index.ts";
import { azure } from "./azure/index.ts";
import { bedrock } from "./bedrock/index.ts";
import { copilot } from "./copilot/index.ts";
import { custom } from "./custom/index.ts";
import { gemini } from "./gemini/index.ts";
import { openai } from "./openai/index.ts";
import { vertex } from "./vertex/index.ts";
import type { Provider } from "./provider.ts";

/** The keys of providers in the schema; test/types/backend.ts does not compile when one is missing. */
export type ServedProvider = "llma" | "llmb" | "llmc" | "llmd" | "llme" | "llmf" | "llmg" | "llmh" | "custom";

const PROVIDERS: Readonly<Record<ServedProvider, Provider>> = {
  llma: openai,
  llmb: copilot,
  llmc: azure,
  llmd: azure,
  llme: anthropic,
  llmh: bedrock,
  llmf: gemini,
  llmg: vertex,
  custom,
};

/** @returns undefined for a key that this version does not serve */
export function providerOf(key: string): Provider | undefined {
  // The check makes it one of the table's keys.
  return Object.hasOwn(PROVIDERS, key) ? PROVIDERS[key as ServedProvider] : undefined;
}
