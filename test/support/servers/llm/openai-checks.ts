/**
 * Checks requests as the OpenAI platform does: unknown parameters, required members, the pairing of calls and results,
 * and limits. A check returns what is wrong, in the words of the service.
 */
import assert, { AssertionError } from "node:assert/strict";

type Fields = Record<string, unknown>;

/** @returns undefined when the body is in order */
export function findResponsesFault(body: Fields): string | undefined {
  return faultOf(() => checkResponses(body));
}

export function findCompletionsFault(body: Fields): string | undefined {
  return faultOf(() => checkCompletions(body));
}

export function findEmbeddingsFault(body: Fields): string | undefined {
  return faultOf(() => {
    checkNames(body, "input model dimensions encoding_format user", "");
    text(body["model"], "model");
    assert.ok(typeof body["input"] === "string" || Array.isArray(body["input"]), "input is missing");
  });
}

function faultOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof AssertionError) return error.message;
    throw error;
  }
}

function checkNames(value: Fields, known: string, path: string): void {
  const names = new Set(known.split(" "));
  for (const name of Object.keys(value)) assert.ok(names.has(name), `Unknown parameter: '${path}${name}'.`);
}

function fields(value: unknown, path: string): Fields {
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), `${path} must be an object`);
  return value as Fields;
}

function list(value: unknown, path: string): Fields[] {
  assert.ok(Array.isArray(value), `${path} must be a list`);
  return value.map((item, at) => fields(item, `${path}[${at}]`));
}

function text(value: unknown, path: string): string {
  assert.ok(typeof value === "string", `${path} must be a string`);
  return value;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function checkFunction(made: Fields, path: string): void {
  assert.match(text(made["name"], `${path}.name`), NAME, `${path}.name does not match the pattern`);
  const schema = fields(made["parameters"] ?? {}, `${path}.parameters`);
  if (made["strict"] === true)
    assert.equal(schema["additionalProperties"], false, `${path}.parameters: additionalProperties must be false`);
}

const RESPONSES =
  "model input instructions stream stream_options tools tool_choice parallel_tool_calls max_output_tokens temperature " +
  "top_p reasoning text user include store previous_response_id conversation background prompt metadata truncation " +
  "service_tier prompt_cache_key prompt_cache_retention safety_identifier max_tool_calls top_logprobs";
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

function checkResponses(body: Fields): void {
  checkNames(body, RESPONSES, "");
  text(body["model"], "model");
  const { max_output_tokens: limit, reasoning, include } = body;
  if (limit !== undefined) assert.ok(Number(limit) >= 16, "max_output_tokens: integer below minimum value");
  if (reasoning !== undefined) {
    const { effort = "medium" } = fields(reasoning, "reasoning");
    assert.ok(EFFORTS.includes(String(effort)), `reasoning.effort ${String(effort)} is not known`);
    assert.equal(body["temperature"], undefined, "Unsupported parameter: 'temperature'");
  }
  if (include !== undefined) assert.deepEqual(include, ["reasoning.encrypted_content"], "include is not known");
  for (const [at, tool] of list(body["tools"] ?? [], "tools").entries()) checkTool(tool, `tools[${at}]`);
  const format = fields(fields(body["text"] ?? {}, "text")["format"] ?? { type: "text" }, "text.format");
  if (format["type"] === "json_schema") {
    text(format["name"], "text.format.name");
    fields(format["schema"], "text.format.schema");
  }
  if (typeof body["input"] !== "string") checkItems(list(body["input"], "input"));
}

function checkTool(tool: Fields, path: string): void {
  if (tool["type"] === "function") {
    checkNames(tool, "type name description parameters strict", `${path}.`);
    assert.notEqual(tool["strict"], undefined, `${path}.strict is missing`);
    checkFunction(tool, path);
  } else {
    assert.equal(tool["type"], "custom", `${path}.type is not known`);
    checkNames(tool, "type name description format", `${path}.`);
  }
}

/** Names of the members of an item by its type; the first ones are required. */
const ITEMS: Readonly<Record<string, readonly [required: string, optional: string]>> = {
  message: ["type role content", "id status phase"],
  function_call: ["type call_id name arguments", "id status"],
  function_call_output: ["type call_id output", "id status"],
  custom_tool_call: ["type call_id name input", "id status"],
  custom_tool_call_output: ["type call_id output", "id"],
  reasoning: ["type summary", "id encrypted_content content status"],
};

function checkItems(items: readonly Fields[]): void {
  const calls = new Set<unknown>();
  for (const [at, given] of items.entries()) {
    const path = `input[${at}]`;
    const item: Fields = { type: "message", ...given };
    const [required, optional] = ITEMS[String(item["type"])] ?? assert.fail(`${path}.type is not known`);
    checkNames(item, `${required} ${optional}`, `${path}.`);
    for (const name of required.split(" "))
      assert.ok(item[name] !== undefined, `Missing required parameter: '${path}.${name}'.`);
    if (item["type"] === "message") checkContent(item, path);
    if (String(item["type"]).endsWith("_call")) calls.add(item["call_id"]);
    if (String(item["type"]).endsWith("_output"))
      assert.ok(
        calls.delete(item["call_id"]),
        `No tool call found for function call output with call_id ${String(item["call_id"])}.`,
      );
  }
  assert.deepEqual([...calls], [], "No tool output found for function call.");
}

const PARTS: Readonly<Record<string, readonly string[]>> = {
  user: ["input_text", "input_image", "input_file", "input_audio"],
  system: ["input_text"],
  developer: ["input_text"],
  assistant: ["output_text", "refusal"],
};

function checkContent({ role, content }: Fields, path: string): void {
  const known = PARTS[String(role)] ?? assert.fail(`${path}.role is not known`);
  if (typeof content === "string") return;
  for (const [at, part] of list(content, `${path}.content`).entries()) {
    const place = `${path}.content[${at}]`;
    const type = text(part["type"], `${place}.type`);
    assert.ok(known.includes(type), `Invalid value: '${type}'. Supported values are: '${known.join("', '")}'.`);
    if (type.endsWith("_text")) text(part["text"], `${place}.text`);
    if (type === "input_image")
      assert.match(text(part["image_url"], place), /^(?:https:|data:image\/\w+;base64,)/, place);
  }
}

const COMPLETIONS =
  "model messages stream stream_options tools tool_choice parallel_tool_calls max_completion_tokens max_tokens " +
  "temperature top_p n stop seed user reasoning_effort response_format metadata service_tier prompt_cache_key " +
  "safety_identifier presence_penalty frequency_penalty logit_bias verbosity";

function checkCompletions(body: Fields): void {
  checkNames(body, COMPLETIONS, "");
  const model = text(body["model"], "model");
  assert.ok(String(body["user"] ?? "").length <= 64, "Invalid 'user': string too long.");
  if (model.startsWith("gpt-")) assert.equal(body["max_tokens"], undefined, "Unsupported parameter: 'max_tokens'");
  if (body["stream_options"] !== undefined) assert.equal(body["stream"], true, "stream_options without stream");
  for (const [at, tool] of list(body["tools"] ?? [], "tools").entries())
    checkFunction(fields(tool["function"], `tools[${at}].function`), `tools[${at}].function`);
  checkMessages(list(body["messages"], "messages"));
}

const ROLES = ["system", "developer", "user", "assistant", "tool"];

function checkMessages(messages: readonly Fields[]): void {
  assert.ok(messages.length > 0, "messages must not be empty");
  let open = new Set<unknown>();
  for (const [at, message] of messages.entries()) {
    const path = `messages[${at}]`;
    const { role, content, tool_calls: calls } = message;
    assert.ok(ROLES.includes(String(role)), `${path}.role is not known`);
    if (role === "tool") {
      assert.ok(open.delete(message["tool_call_id"]), "messages with role 'tool' must be a response to 'tool_calls'");
      continue;
    }
    assert.equal(open.size, 0, "An assistant message with 'tool_calls' must be followed by tool messages");
    if (calls !== undefined) open = new Set(list(calls, `${path}.tool_calls`).map(({ id }) => id));
    else assert.ok(typeof content === "string" || Array.isArray(content), `${path}.content is missing`);
  }
  assert.equal(open.size, 0, "An assistant message with 'tool_calls' must be followed by tool messages");
}
