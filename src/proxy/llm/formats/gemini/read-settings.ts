/** Reads `generationConfig` of a Gemini request. `read-request.ts` uses it. */
import type { Conversation, OutputFormat, ReasoningSettings, Sampling } from "../../conversation/conversation.ts";
import type { Losses } from "../../conversation/losses.ts";
import { listOf, type JsonObject } from "../../shared/json.ts";
import {
  invalidRequest,
  readBoolean,
  readCount,
  readNumber,
  readObject,
  readText,
} from "../../shared/request-fields.ts";
import { readStop } from "../shared/stop.ts";
import { bothSpellings, memberOf } from "./member.ts";
import { readSchema } from "./read-schema.ts";

const PATH = "generationConfig";

const READ = bothSpellings(
  "maxOutputTokens temperature topP topK stopSequences seed presencePenalty frequencyPenalty candidateCount " +
    "responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities",
);

export function readGenerationConfig(
  body: JsonObject,
  losses: Losses,
): Pick<Conversation, "sampling" | "reasoning" | "output"> {
  const config = readObject(memberOf(body, "generationConfig"), PATH) ?? {};
  requireTextOnly(config);
  for (const name of Object.keys(config)) if (!READ.has(name) && config[name] !== null) losses.add(`${PATH}.${name}`);
  const reasoning = readThinking(config);
  const output = readOutput(config);
  return {
    sampling: readSampling(config),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(output === undefined ? {} : { output }),
  };
}

/** Speech and images cannot be asked for in the other formats. */
function requireTextOnly(config: JsonObject): void {
  listOf(memberOf(config, "responseModalities")).forEach((modality, at) => {
    if (typeof modality !== "string" || modality.toUpperCase() !== "TEXT")
      throw invalidRequest(`${PATH}.responseModalities[${at}] must be TEXT for this provider`);
  });
}

function readSampling(config: JsonObject): Sampling {
  return {
    maxTokens: readCount(memberOf(config, "maxOutputTokens"), `${PATH}.maxOutputTokens`),
    temperature: readNumber(config["temperature"], `${PATH}.temperature`),
    topP: readNumber(memberOf(config, "topP"), `${PATH}.topP`),
    topK: readNumber(memberOf(config, "topK"), `${PATH}.topK`),
    stop: readStop(memberOf(config, "stopSequences"), `${PATH}.stopSequences`),
    seed: readNumber(config["seed"], `${PATH}.seed`),
    presencePenalty: readNumber(memberOf(config, "presencePenalty"), `${PATH}.presencePenalty`),
    frequencyPenalty: readNumber(memberOf(config, "frequencyPenalty"), `${PATH}.frequencyPenalty`),
    choices: readCount(memberOf(config, "candidateCount"), `${PATH}.candidateCount`),
  };
}

/** A budget of 0 switches thinking off, -1 leaves it to the model. */
function readThinking(config: JsonObject): ReasoningSettings | undefined {
  const path = `${PATH}.thinkingConfig`;
  const thinking = readObject(memberOf(config, "thinkingConfig"), path);
  if (thinking === undefined) return undefined;
  const budget = readNumber(memberOf(thinking, "thinkingBudget"), `${path}.thinkingBudget`);
  const level = readText(memberOf(thinking, "thinkingLevel"), `${path}.thinkingLevel`)?.toLowerCase();
  const isShown = readBoolean(memberOf(thinking, "includeThoughts"), `${path}.includeThoughts`) === true;
  if (budget === 0) return { isEnabled: false };
  if (budget === undefined && !isKnownLevel(level) && !isShown) return undefined;
  return {
    isEnabled: true,
    ...(isKnownLevel(level) ? { effort: level } : {}),
    ...(budget === undefined || budget < 0 ? {} : { budgetTokens: Math.floor(budget) }),
    ...((budget ?? -1) < 0 && !isKnownLevel(level) ? { isAdaptive: true } : {}),
    display: isShown ? "summarized" : "omitted",
  };
}

function isKnownLevel(level: string | undefined): level is string {
  return level === "minimal" || level === "low" || level === "medium" || level === "high";
}

function readOutput(config: JsonObject): OutputFormat | undefined {
  const schema = readOutputSchema(config);
  const type = readText(memberOf(config, "responseMimeType"), `${PATH}.responseMimeType`) ?? "text/plain";
  if (type === "application/json") return schema === undefined ? {} : { schema };
  if (type !== "text/plain")
    throw invalidRequest(`${PATH}.responseMimeType must be text/plain or application/json for this provider`);
  return undefined;
}

function readOutputSchema(config: JsonObject): JsonObject | undefined {
  const schema = readObject(memberOf(config, "responseSchema"), `${PATH}.responseSchema`);
  if (schema !== undefined) return readSchema(schema, `${PATH}.responseSchema`);
  return readObject(memberOf(config, "responseJsonSchema"), `${PATH}.responseJsonSchema`);
}
