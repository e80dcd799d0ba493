/** Prints a conversation as a request of the Bedrock Converse API, whose path names the model and the way to answer. */
import { callIds, type Conversation, type SystemText } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { effortOf } from "../../conversation/reasoning.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";
import type { PrintContext, PrintedRequest } from "../chat-format.ts";
import { printSampling, printThinking } from "../messages/thinking.ts";
import { printExtra } from "../shared/extra.ts";
import { CacheMarks } from "./cache-marks.ts";
import { canCache, familyOf, type Family } from "./model.ts";
import { AllowedNames } from "../shared/allowed-names.ts";
import { printOutputSchema, withOutput } from "../shared/output-schema.ts";
import { toolNamesIn } from "../shared/tool-names.ts";
import { printMessages } from "./print-content.ts";
import { printTools } from "./print-tools.ts";

const DEFAULT_MAX_TOKENS = 4096;
/** Fields of the Messages API that Claude takes behind Converse as well. */
const CLAUDE_FIELDS: ReadonlySet<string> = new Set(["context_management"]);
const NO_FIELDS: ReadonlySet<string> = new Set();

export function printRequest(conversation: Conversation, { losses, tags }: PrintContext): PrintedRequest {
  const { model, sampling, turns, tools } = conversation;
  if ((sampling.choices ?? 1) > 1) throw invalidRequest("n greater than 1 cannot be translated for this provider");
  const family = familyOf(model);
  const maxTokens = sampling.maxTokens ?? DEFAULT_MAX_TOKENS;
  const marks = new CacheMarks(canCache(model), losses);
  const names = new AllowedNames(toolNamesIn(conversation));
  const ids = callIds(turns);
  const calls = new AllowedNames(ids);

  const body: JsonObject = {};
  const system = printSystem(withOutput(conversation), marks);
  body["messages"] = printMessages(turns, { tools: names, calls, marks, losses });
  if (body["messages"].length === 0) throw invalidRequest("the request has no message with content");
  if (system.length > 0) body["system"] = system;
  const { thinking, effort } =
    family === "claude" ? printThinking(conversation.reasoning, { model, tags, maxTokens, turns, losses }) : {};
  const isThinking = thinking !== undefined;
  const settings = printSampling(conversation, { isThinking, tags, losses });
  body["inferenceConfig"] = printInference(conversation.sampling, { ...settings, maxTokens });
  const hasCalls = ids.length > 0;
  const { toolConfig, fields } = printTools(conversation, { family, names, marks, losses, isThinking, hasCalls });
  if (toolConfig !== undefined) body["toolConfig"] = toolConfig;
  const output = printOutput(conversation.output);
  if (output !== undefined) body["outputConfig"] = output;

  const additional: JsonObject = {
    ...fields,
    ...printTopK(settings.topK, family),
    ...printReasoning(conversation, family),
  };
  if (isThinking) additional["thinking"] = thinking;
  // The model's own field and `outputConfig` cannot travel together.
  if (effort !== undefined && output !== undefined) output["effort"] = effort;
  else if (effort !== undefined) additional["output_config"] = { effort };
  const known = family === "claude" ? CLAUDE_FIELDS : NO_FIELDS;
  Object.assign(additional, printExtra(conversation, { target: "anthropic", known, losses }));
  if (Object.keys(additional).length > 0) body["additionalModelRequestFields"] = additional;
  nameLosses(conversation, family, losses);
  const { originals } = names;
  return { body, ...(originals === undefined || tools.length === 0 ? {} : { toolNames: originals }) };
}

function printSystem(system: readonly SystemText[], marks: CacheMarks): JsonObject[] {
  const blocks: JsonObject[] = [];
  for (const { text, cache } of system) {
    blocks.push({ text });
    if (cache !== undefined) marks.addTo(blocks, cache, "system");
  }
  return blocks;
}

function printInference(
  { stop }: Conversation["sampling"],
  { maxTokens, temperature, topP }: { maxTokens: number; temperature?: number | undefined; topP?: number | undefined },
): JsonObject {
  const sequences = (stop ?? []).filter((sequence) => sequence.trim() !== "");
  return {
    maxTokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(sequences.length === 0 ? {} : { stopSequences: sequences }),
  };
}

function printTopK(topK: number | undefined, family: Family): JsonObject {
  if (topK === undefined) return {};
  return family === "nova" ? { inferenceConfig: { topK } } : { top_k: topK };
}

/** Efforts of the open models of OpenAI. */
const OPEN_EFFORTS: ReadonlyMap<string, string> = new Map([
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "high"],
  ["max", "high"],
]);

/** Prints how much a model may think that is not Claude, and that Claude shall not think. */
function printReasoning({ reasoning }: Conversation, family: Family): JsonObject {
  if (reasoning === undefined) return {};
  const effort = family === "gpt-oss" ? OPEN_EFFORTS.get(effortOf(reasoning)) : undefined;
  if (effort !== undefined) return { reasoning_effort: effort };
  // A client of the Messages API can say it explicitly, for models that think unless they are told not to.
  const isOff = family === "claude" && !reasoning.isEnabled && reasoning.effort === undefined;
  return isOff ? { thinking: { type: "disabled" } } : {};
}

function printOutput(output: Conversation["output"]): JsonObject | undefined {
  const schema = printOutputSchema(output);
  if (schema === undefined) return undefined;
  const name = output?.name;
  const named = name !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(name) ? { name } : {};
  const jsonSchema = { ...named, schema: JSON.stringify(schema) };
  return { textFormat: { type: "json_schema", structure: { jsonSchema } } };
}

function nameLosses({ sampling, user, reasoning }: Conversation, family: Family, losses: Losses): void {
  if (user !== undefined) losses.add("user");
  if (sampling.seed !== undefined) losses.add("seed");
  if (sampling.presencePenalty !== undefined) losses.add("presence_penalty");
  if (sampling.frequencyPenalty !== undefined) losses.add("frequency_penalty");
  if ((family === "nova" || family === "other") && reasoning?.isEnabled === true) losses.add("reasoning_effort");
}
