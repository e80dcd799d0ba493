/**
 * Checks requests of the Converse API as the service does: members and their types, alternation of roles, pairing of
 * calls and results, names, cache points. The strict Bedrock server and tests of the printer use it.
 */
import { findSchemaFault } from "./anthropic-checks.ts";

type Value = unknown;
type Members = Readonly<Record<string, Value>>;

/** What is wrong with a body, in the words of the service. */
class Fault extends Error {}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const DOCUMENT_NAME = /^(?! )(?!.* {2})[A-Za-z0-9 ()[\]-]{1,200}(?<! )$/;
const IMAGE_FORMATS = ["png", "jpeg", "gif", "webp"];
const DOCUMENT_FORMATS = ["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"];

/** @returns undefined for a body that the service accepts */
export function findConverseFault(body: Value): string | undefined {
  try {
    checkBody(body);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

function demand(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Fault(message);
}

function isMembers(value: Value): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns an object that has no other members than those named; `!` marks one that has to be there. */
function membersOf(value: Value, path: string, names: string): Members {
  demand(isMembers(value), `${path} must be an object`);
  const known = names.split(" ");
  for (const name of Object.keys(value))
    demand(known.includes(name) || known.includes(`${name}!`), `${path}.${name} is not a known member`);
  for (const name of known)
    if (name.endsWith("!")) demand(value[name.slice(0, -1)] !== undefined, `${path}.${name.slice(0, -1)} is missing`);
  return value;
}

function listIn(value: Value, path: string, least = 1): readonly Value[] {
  demand(Array.isArray(value) && value.length >= least, `${path} must be a list of at least ${least}`);
  return value;
}

function textIn(value: Value, path: string): string {
  demand(typeof value === "string" && value.trim() !== "", `The text field in ${path} is blank.`);
  return value;
}

function bytesIn(value: Value, path: string): void {
  const { bytes } = membersOf(value, path, "bytes!");
  demand(typeof bytes === "string" && bytes !== "" && BASE64.test(bytes), `${path}.bytes must be base64`);
}

/** Returns the one member of a union. */
function unionIn(value: Value, path: string): readonly [name: string, value: Value] {
  demand(isMembers(value), `${path} must be an object`);
  const [member, ...others] = Object.entries(value);
  demand(member !== undefined && others.length === 0, `${path} must have exactly one member`);
  return member;
}

interface Seen {
  readonly documents: Set<string>;
  cachePoints: number;
  hasCalls: boolean;
}

const BODY_MEMBERS =
  "messages! system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields requestMetadata " +
  "performanceConfig serviceTier outputConfig additionalModelResponseFieldPaths promptVariables";

function checkBody(value: Value): void {
  const body = membersOf(value, "body", BODY_MEMBERS);
  const seen: Seen = { documents: new Set(), cachePoints: 0, hasCalls: false };
  if (body["system"] !== undefined) checkSystem(body["system"], seen);
  checkMessages(body["messages"], seen);
  checkInference(body["inferenceConfig"] ?? {});
  if (body["toolConfig"] !== undefined) checkTools(body["toolConfig"], seen);
  const message = "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
  demand(!seen.hasCalls || body["toolConfig"] !== undefined, message);
  demand(seen.cachePoints <= 4, `A maximum of 4 cache points is allowed, found ${seen.cachePoints}.`);
  checkGuardrail(body["guardrailConfig"]);
  checkOutput(body["outputConfig"]);
  checkAdditional(body);
  for (const [name, text] of Object.entries(membersOfAny(body["requestMetadata"] ?? {}, "requestMetadata")))
    demand(name.length <= 256 && typeof text === "string" && text.length <= 256, "requestMetadata must hold texts");
}

function membersOfAny(value: Value, path: string): Members {
  demand(isMembers(value), `${path} must be an object`);
  return value;
}

function checkSystem(value: Value, seen: Seen): void {
  listIn(value, "system").forEach((block, at) => {
    const [kind, content] = unionIn(block, `system.${at}`);
    if (kind === "cachePoint") checkCachePoint(content, `system.${at}`, seen, at > 0);
    else {
      demand(kind === "text", `system.${at}.${kind} is not a known member`);
      textIn(content, `system.${at}`);
    }
  });
}

function checkCachePoint(value: Value, path: string, seen: Seen, hasPrefix: boolean): void {
  const { type, ttl } = membersOf(value, path, "type! ttl");
  demand(type === "default" && (ttl === undefined || ttl === "5m" || ttl === "1h"), `${path} is not a cache point`);
  demand(hasPrefix, "There is nothing available to cache.");
  seen.cachePoints++;
}

interface Message {
  readonly role: string;
  readonly content: readonly (readonly [kind: string, value: Value])[];
}

function checkMessages(value: Value, seen: Seen): void {
  const messages = listIn(value, "messages").map((message, at) => checkMessage(message, `messages.${at}`, seen));
  demand(messages[0]?.role === "user", "A conversation must start with a user message.");
  messages.forEach(({ role }, at) => {
    demand(role !== messages[at - 1]?.role, "roles must alternate between user and assistant");
  });
  const used = new Set<string>();
  messages.forEach((message, at) => {
    const calls = idsOf(message, "toolUse");
    for (const id of calls) demand(!used.has(id), `duplicate toolUseId ${id}`);
    for (const id of calls) used.add(id);
    const results = idsOf(messages[at + 1], "toolResult");
    const unmatched = calls.filter((id) => !results.includes(id));
    demand(unmatched.length === 0, `Expected toolResult blocks at messages.${at + 1} for: ${unmatched.join(", ")}`);
    const before = idsOf(messages[at - 1], "toolUse");
    for (const id of idsOf(message, "toolResult"))
      demand(before.includes(id), `The toolResult at messages.${at} has no toolUse ${id} in the previous turn.`);
  });
}

function idsOf(message: Message | undefined, kind: string): string[] {
  return (message?.content ?? [])
    .filter(([each]) => each === kind)
    .map(([, value]) => String((value as Members)["toolUseId"]));
}

function checkMessage(value: Value, path: string, seen: Seen): Message {
  const { role, content } = membersOf(value, path, "role! content!");
  demand(role === "user" || role === "assistant", `${path}.role must be user or assistant`);
  const blocks = listIn(content, `${path}.content`).map((block, at) => unionIn(block, `${path}.content.${at}`));
  blocks.forEach(([kind, block], at) => {
    const place = `${path}.content.${at}`;
    if (kind === "cachePoint") checkPlace(blocks[at - 1], block, place, seen);
    else checkBlock(kind, block, { path: place, role, seen });
  });
  const kinds = blocks.map(([kind]) => kind);
  demand(!kinds.includes("document") || kinds.includes("text"), "A text block is required when using documents.");
  return { role, content: blocks };
}

function checkPlace(before: readonly [string, Value] | undefined, value: Value, path: string, seen: Seen): void {
  checkCachePoint(value, path, seen, before !== undefined && before[0] !== "cachePoint");
  demand(before?.[0] !== "reasoningContent", "Cache point cannot be inserted after reasoning block.");
  const isText = before?.[0] === "document" && (before[1] as Members)["format"] !== "pdf";
  demand(!isText, "Cache point cannot be inserted after a document that is not PDF.");
}

interface BlockContext {
  readonly path: string;
  readonly role: string;
  readonly seen: Seen;
}

function checkBlock(kind: string, value: Value, { path, role, seen }: BlockContext): void {
  switch (kind) {
    case "text":
      textIn(value, path);
      return;
    case "image": {
      const { format, source } = membersOf(value, path, "format! source!");
      demand(IMAGE_FORMATS.includes(String(format)), `${path}.format is not known`);
      return bytesIn(source, `${path}.source`);
    }
    case "document":
      return checkDocument(value, path, seen);
    case "searchResult": {
      const result = membersOf(value, path, "source! title! content! citations");
      for (const item of listIn(result["content"], path)) textIn(membersOf(item, path, "text!")["text"], path);
      return;
    }
    case "toolUse":
      demand(role === "assistant", "toolUse is only allowed in messages of the assistant");
      return checkCall(value, path, seen);
    case "toolResult":
      demand(role === "user", "toolResult is only allowed in messages of the user");
      return checkResult(value, path, seen);
    case "reasoningContent":
      demand(role === "assistant", "reasoningContent is only allowed in messages of the assistant");
      return checkReasoning(value, path);
    default:
      throw new Fault(`${path}.${kind} is not a known member`);
  }
}

function checkDocument(value: Value, path: string, seen: Seen): void {
  const { format, name, source } = membersOf(value, path, "format! name! source! context citations");
  demand(DOCUMENT_FORMATS.includes(String(format)), `${path}.format is not known`);
  demand(typeof name === "string" && DOCUMENT_NAME.test(name), `${path}.name has characters that are not allowed`);
  demand(!seen.documents.has(name), `duplicate document name ${name}`);
  seen.documents.add(name);
  bytesIn(source, `${path}.source`);
}

function checkCall(value: Value, path: string, seen: Seen): void {
  const { toolUseId, name, input } = membersOf(value, path, "toolUseId! name! input! type");
  demand(typeof toolUseId === "string" && NAME.test(toolUseId), `${path}.toolUseId does not match the pattern`);
  demand(typeof name === "string" && NAME.test(name), `${path}.name does not match the pattern`);
  demand(isMembers(input), `${path}.input must be an object`);
  seen.hasCalls = true;
}

function checkResult(value: Value, path: string, seen: Seen): void {
  const { toolUseId, content, status } = membersOf(value, path, "toolUseId! content! status");
  demand(typeof toolUseId === "string" && NAME.test(toolUseId), `${path}.toolUseId does not match the pattern`);
  demand(status === undefined || status === "success" || status === "error", `${path}.status is not known`);
  seen.hasCalls = true;
  listIn(content, `${path}.content`).forEach((item, at) => {
    const place = `${path}.content.${at}`;
    const [kind, block] = unionIn(item, place);
    demand(["text", "image", "document", "searchResult", "json"].includes(kind), `${place}.${kind} is not known`);
    if (kind !== "json") checkBlock(kind, block, { path: place, role: "user", seen });
  });
}

function checkReasoning(value: Value, path: string): void {
  const [kind, content] = unionIn(value, path);
  if (kind === "redactedContent") {
    demand(typeof content === "string" && BASE64.test(content), `${path}.redactedContent must be base64`);
    return;
  }
  demand(kind === "reasoningText", `${path}.${kind} is not a known member`);
  const { text, signature } = membersOf(content, path, "text! signature!");
  demand(typeof text === "string" && typeof signature === "string" && signature !== "", `${path} must be signed`);
}

function checkInference(value: Value): void {
  const config = membersOf(value, "inferenceConfig", "maxTokens temperature topP stopSequences");
  const { maxTokens, temperature, topP, stopSequences = [] } = config;
  demand(
    maxTokens === undefined || (Number.isInteger(maxTokens) && Number(maxTokens) > 0),
    "maxTokens must be above 0",
  );
  for (const share of [temperature, topP])
    demand(share === undefined || (typeof share === "number" && share >= 0 && share <= 1), "must be from 0 to 1");
  for (const text of listIn(stopSequences, "stopSequences", 0)) textIn(text, "stopSequences");
}

function checkTools(value: Value, seen: Seen): void {
  const { tools, toolChoice } = membersOf(value, "toolConfig", "tools! toolChoice");
  const names = new Set<Value>();
  listIn(tools, "toolConfig.tools").forEach((tool, at) => {
    const path = `toolConfig.tools.${at}`;
    const [kind, content] = unionIn(tool, path);
    if (kind === "cachePoint") return checkCachePoint(content, path, seen, at > 0);
    demand(kind === "toolSpec", `${path}.${kind} is not a known member`);
    const { name, description, inputSchema } = membersOf(content, path, "name! description inputSchema! strict");
    demand(typeof name === "string" && NAME.test(name) && !names.has(name), `${path}.name is not allowed`);
    names.add(name);
    if (description !== undefined) textIn(description, `${path}.description`);
    const { json } = membersOf(inputSchema, path, "json!");
    demand(isMembers(json) && json["type"] === "object", `${path}.inputSchema.json must describe an object`);
  });
  if (toolChoice === undefined) return;
  const [kind, choice] = unionIn(toolChoice, "toolConfig.toolChoice");
  demand(["auto", "any", "tool"].includes(kind), `toolConfig.toolChoice.${kind} is not a known member`);
  const { name } = membersOf(choice, "toolConfig.toolChoice", kind === "tool" ? "name!" : "");
  demand(kind !== "tool" || names.has(name), "toolConfig.toolChoice names a tool that is not there");
}

function checkGuardrail(value: Value): void {
  if (value === undefined) return;
  const config = membersOf(
    value,
    "guardrailConfig",
    "guardrailIdentifier! guardrailVersion! trace streamProcessingMode",
  );
  demand(typeof config["guardrailIdentifier"] === "string", "guardrailConfig.guardrailIdentifier must be a text");
  demand(/^(?:DRAFT|[1-9]\d{0,7})$/.test(String(config["guardrailVersion"])), "guardrailVersion is not a version");
  const { trace = "disabled" } = config;
  demand(["enabled", "disabled", "enabled_full"].includes(String(trace)), "guardrailConfig.trace is not known");
}

function checkOutput(value: Value): void {
  if (value === undefined) return;
  const { textFormat } = membersOf(value, "outputConfig", "textFormat effort");
  if (textFormat === undefined) return;
  const { type, structure } = membersOf(textFormat, "outputConfig.textFormat", "type! structure!");
  demand(type === "json_schema", "outputConfig.textFormat.type is not known");
  const { jsonSchema } = membersOf(structure, "outputConfig.textFormat.structure", "jsonSchema!");
  const { schema } = membersOf(jsonSchema, "outputConfig.textFormat.structure.jsonSchema", "schema! name description");
  const parsed: unknown = typeof schema === "string" ? JSON.parse(schema) : undefined;
  demand(isMembers(parsed), "jsonSchema.schema must be JSON text");
  const fault = findSchemaFault(parsed, "jsonSchema.schema");
  demand(fault === undefined, fault ?? "");
}

/** Checks the fields of the model against the members of the API that mean the same. */
function checkAdditional(body: Members): void {
  const fields = membersOfAny(body["additionalModelRequestFields"] ?? {}, "additionalModelRequestFields");
  const choice = isMembers(body["toolConfig"]) ? body["toolConfig"]["toolChoice"] : undefined;
  const conflict = (name: string): string => `The additional field ${name} conflicts with an existing field.`;
  demand(choice === undefined || fields["tool_choice"] === undefined, conflict("tool_choice"));
  demand(body["outputConfig"] === undefined || fields["output_config"] === undefined, conflict("output_config"));
  const { thinking, anthropic_beta = [] } = fields;
  for (const beta of listIn(anthropic_beta, "anthropic_beta", 0)) textIn(beta, "anthropic_beta");
  if (!isMembers(thinking) || thinking["type"] === "disabled") return;
  const inference = membersOfAny(body["inferenceConfig"] ?? {}, "inferenceConfig");
  for (const name of ["temperature", "topP"])
    demand(inference[name] === undefined, `${name} may not be set when thinking is enabled`);
  demand(fields["top_k"] === undefined, "top_k may not be set when thinking is enabled");
  demand(!isMembers(choice) || "auto" in choice, "Thinking may not be enabled when tool_choice forces tool use.");
  if (thinking["type"] !== "enabled") return;
  const budget = Number(thinking["budget_tokens"]);
  demand(budget >= 1024 && budget < Number(inference["maxTokens"]), "thinking.budget_tokens is out of bounds");
}
