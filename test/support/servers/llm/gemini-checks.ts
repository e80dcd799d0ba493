/**
 * Checks requests of the Gemini API as the service does: members and their types, pairs of calls and results, signatures
 * of calls, schemas. The strict Google server and tests of the printer use it.
 */

type Value = unknown;
type Members = Readonly<Record<string, Value>>;

/** What is wrong with a body, in the words of the service. */
class Fault extends Error {}

/** @param model decides whether calls have to be signed @returns undefined for a body that the service accepts */
export function findGeminiFault(body: Value, model: string): string | undefined {
  try {
    checkBody(body, model);
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
  demand(isMembers(value), `Invalid value at '${path}': an object is wanted`);
  const known = names.split(" ");
  for (const name of Object.keys(value))
    demand(
      known.includes(name) || known.includes(`${name}!`),
      `Invalid JSON payload received. Unknown name "${name}" at '${path}': Cannot find field.`,
    );
  for (const name of known)
    if (name.endsWith("!"))
      demand(value[name.slice(0, -1)] !== undefined, `${path}.${name.slice(0, -1)}: missing field.`);
  return value;
}

function listIn(value: Value, path: string): readonly Value[] {
  demand(Array.isArray(value) && value.length > 0, `${path}: must not be empty`);
  return value;
}

function textIn(value: Value, path: string): string {
  demand(typeof value === "string", `Invalid value at '${path}' (TYPE_STRING)`);
  return value;
}

function checkBody(value: Value, model: string): void {
  const body = membersOf(
    value,
    "request",
    "contents! systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels",
  );
  checkContents(listIn(body["contents"], "contents"), /gemini-[3-9]/.test(model));
  if (body["cachedContent"] !== undefined)
    demand(
      body["systemInstruction"] === undefined && body["tools"] === undefined && body["toolConfig"] === undefined,
      "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.",
    );
  if (body["systemInstruction"] !== undefined) {
    const { parts } = membersOf(body["systemInstruction"], "systemInstruction", "parts! role");
    for (const part of listIn(parts, "systemInstruction.parts"))
      textIn(membersOf(part, "part", "text!")["text"], "text");
  }
  const names = checkTools(body["tools"]);
  if (body["toolConfig"] !== undefined) checkToolConfig(body["toolConfig"], names);
  if (body["generationConfig"] !== undefined) checkConfig(body["generationConfig"], model);
}

interface Turn {
  readonly role: string;
  readonly calls: readonly string[];
  readonly results: readonly string[];
}

function checkContents(contents: readonly Value[], needsSignatures: boolean): void {
  const turns = contents.map((content, at) => checkContent(content, `contents[${at}]`, needsSignatures));
  turns.forEach(({ calls, results }, at) => {
    const before = turns[at - 1];
    if (calls.length > 0)
      demand(
        before?.role === "user",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
      );
    const expected = before?.calls ?? [];
    demand(
      results.length === expected.length,
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    );
    demand(results.join() === expected.join(), "Function response names must be in the order of the function calls.");
  });
  demand(turns.at(-1)?.role === "user", "Please ensure that single turn requests end with a user role");
}

function checkContent(value: Value, path: string, needsSignatures: boolean): Turn {
  const { role = "user", parts } = membersOf(value, path, "role parts!");
  demand(role === "user" || role === "model", "Please use a valid role: user, model.");
  const calls: string[] = [];
  const results: string[] = [];
  listIn(parts, `${path}.parts`).forEach((part, at) => {
    const [kind, data, signature] = checkPart(part, `${path}.parts[${at}]`);
    if (kind === "functionCall") {
      demand(role === "model", "Function call is expected in a model turn.");
      if (calls.length === 0 && needsSignatures)
        demand(signature !== undefined, "Function call is missing a thought_signature in functionCall parts.");
      calls.push(textIn((data as Members)["name"], `${path}.name`)); // checkPart has checked it
    }
    if (kind !== "functionResponse") return;
    demand(role === "user", "Function response is expected in a user turn.");
    results.push(textIn((data as Members)["name"], `${path}.name`)); // checkPart has checked it
  });
  return { role, calls, results };
}

const DATA = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
];
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function checkPart(value: Value, path: string): readonly [kind: string, data: Value, signature: string | undefined] {
  const part = membersOf(value, path, `${DATA.join(" ")} thought thoughtSignature`);
  const [kind, ...others] = DATA.filter((name) => part[name] !== undefined);
  demand(
    kind !== undefined && others.length === 0,
    `${path}.data: required oneof field 'data' must have one initialized field`,
  );
  const signature = part["thoughtSignature"] === undefined ? undefined : textIn(part["thoughtSignature"], path);
  if (signature !== undefined)
    demand(
      (signature !== "" && BASE64.test(signature)) || signature === "skip_thought_signature_validator",
      "Corrupted thought signature.",
    );
  const data = part[kind];
  if (kind === "text") textIn(data, `${path}.text`);
  if (kind === "inlineData") {
    const { mimeType, data: bytes } = membersOf(data, `${path}.inlineData`, "mimeType! data! displayName");
    demand(/^\w+\/[\w.+-]+$/.test(textIn(mimeType, path)), `Unsupported MIME type: ${String(mimeType)}`);
    demand(bytes !== "" && BASE64.test(textIn(bytes, path)), `Base64 decoding failed at '${path}'`);
  }
  if (kind === "fileData") {
    const { fileUri } = membersOf(data, `${path}.fileData`, "mimeType fileUri! displayName");
    demand(
      /^gs:|^https:\/\/generativelanguage\.googleapis\.com\//.test(textIn(fileUri, path)),
      "Invalid or unsupported file uri",
    );
  }
  if (kind === "functionCall")
    demand(isMembers(membersOf(data, `${path}.functionCall`, "name! args id")["args"] ?? {}), path);
  if (kind === "functionResponse") checkResult(data, `${path}.functionResponse`);
  return [kind, data, signature];
}

function checkResult(value: Value, path: string): void {
  const { response, parts } = membersOf(value, path, "name! response! id parts");
  demand(isMembers(response), `Invalid value at '${path}.response' (TYPE_MESSAGE)`);
  if (parts === undefined) return;
  for (const part of listIn(parts, `${path}.parts`)) membersOf(part, `${path}.parts`, "inlineData fileData");
}

function checkTools(tools: Value): ReadonlySet<string> {
  const names = new Set<string>();
  if (tools === undefined) return names;
  listIn(tools, "tools").forEach((value, at) => {
    const tool = membersOf(value, `tools[${at}]`, "functionDeclarations googleSearch codeExecution urlContext");
    if (tool["functionDeclarations"] === undefined) return;
    listIn(tool["functionDeclarations"], `tools[${at}].functionDeclarations`).forEach((declared, index) => {
      const path = `tools[${at}].function_declarations[${index}]`;
      const { name, parameters } = membersOf(declared, path, "name! description parameters parametersJsonSchema");
      demand(/^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/.test(textIn(name, path)), `${path}.name: Invalid function name.`);
      demand(!names.has(String(name)), `Duplicate function declaration found: ${String(name)}`);
      names.add(String(name));
      if (parameters !== undefined) checkSchema(parameters, `${path}.parameters`);
    });
  });
  return names;
}

function checkToolConfig(value: Value, names: ReadonlySet<string>): void {
  const { functionCallingConfig } = membersOf(value, "toolConfig", "functionCallingConfig!");
  const { mode, allowedFunctionNames = [] } = membersOf(
    functionCallingConfig,
    "toolConfig",
    "mode! allowedFunctionNames",
  );
  demand(["AUTO", "ANY", "NONE"].includes(String(mode)), "Invalid value at 'tool_config.function_calling_config.mode'");
  demand(names.size > 0, "Function calling config is set without function_declarations.");
  for (const name of allowedFunctionNames as readonly string[])
    demand(mode === "ANY" && names.has(name), `Allowed function name ${name} is not declared`);
}

const SCHEMA =
  "type format title description nullable enum maxItems minItems properties required minProperties maxProperties " +
  "minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum $ref $defs";
const TYPES = ["string", "number", "integer", "boolean", "array", "object"];

function checkSchema(value: Value, path: string): void {
  const schema = membersOf(value, path, SCHEMA);
  const { type } = schema;
  if (type !== undefined)
    demand(TYPES.includes(textIn(type, `${path}.type`).toLowerCase()), `Invalid value at '${path}.type'`);
  if (type === "array") demand(schema["items"] !== undefined, `${path}.items: missing field.`);
  if (schema["format"] !== undefined)
    demand(
      ["enum", "date-time"].includes(String(schema["format"])),
      `${path}.format: only 'enum' and 'date-time' are supported`,
    );
  if (schema["enum"] !== undefined) for (const each of listIn(schema["enum"], path)) textIn(each, `${path}.enum`);
  if (schema["items"] !== undefined) checkSchema(schema["items"], `${path}.items`);
  if (schema["anyOf"] !== undefined)
    for (const each of listIn(schema["anyOf"], path)) checkSchema(each, `${path}.any_of`);
  const properties = schema["properties"] ?? {};
  demand(isMembers(properties), `Invalid value at '${path}.properties'`);
  for (const [name, each] of Object.entries(properties)) checkSchema(each, `${path}.properties[${name}]`);
  for (const name of (schema["required"] ?? []) as readonly string[])
    demand(Object.hasOwn(properties, name), `${path}.required[${name}]: property is not defined`);
}

function checkConfig(value: Value, model: string): void {
  const config = membersOf(
    value,
    "generation_config",
    "maxOutputTokens temperature topP topK stopSequences seed presencePenalty frequencyPenalty candidateCount " +
      "responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities mediaResolution",
  );
  if (config["responseSchema"] !== undefined) {
    demand(
      config["responseMimeType"] === "application/json",
      "Function calling with a response schema needs application/json",
    );
    checkSchema(config["responseSchema"], "generation_config.response_schema");
  }
  if (config["stopSequences"] !== undefined)
    demand(listIn(config["stopSequences"], "stop_sequences").length <= 5, "at most 5");
  if (config["thinkingConfig"] === undefined) return;
  const thinking = membersOf(
    config["thinkingConfig"],
    "thinking_config",
    "includeThoughts thinkingBudget thinkingLevel",
  );
  demand(
    thinking["thinkingBudget"] === undefined || thinking["thinkingLevel"] === undefined,
    "You can only set only one of thinking budget and thinking level.",
  );
  if (!/gemini-[3-9]/.test(model))
    demand(thinking["thinkingLevel"] === undefined, "Thinking level is not supported for this model.");
}
