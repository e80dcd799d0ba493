/**
 * Checks requests of the Messages API as the service does: members and their types, alternation of roles, pairing of
 * calls and results, thoughts, cache marks. The strict Anthropic server and the matrix of all formats use it.
 */
import assert, { AssertionError } from "node:assert/strict";

type Fields = Record<string, unknown>;

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** @returns undefined for a body that the service accepts */
export function findMessagesFault(body: Fields): string | undefined {
  try {
    checkBody(body);
    return undefined;
  } catch (error) {
    if (error instanceof AssertionError) return error.message;
    throw error;
  }
}

/** Returns an object that has no other members than those named; `!` marks one that has to be there. */
function fieldsOf(value: unknown, path: string, names: string): Fields {
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), `${path}: Input should be an object`);
  const known = names.split(" ");
  for (const name of Object.keys(value))
    assert.ok(known.includes(name) || known.includes(`${name}!`), `${path}.${name}: Extra inputs are not permitted`);
  const fields = value as Fields;
  for (const name of known)
    if (name.endsWith("!")) assert.ok(fields[name.slice(0, -1)] !== undefined, `${path}.${name} Field required`);
  return fields;
}

function listOf(value: unknown, path: string): readonly unknown[] {
  assert.ok(Array.isArray(value) && value.length > 0, `${path}: at least one item is required`);
  return value;
}

function checkText(value: unknown, path: string): void {
  assert.ok(typeof value === "string" && value.trim() !== "", `${path}: text content blocks must be non-empty`);
}

const BODY =
  "model! max_tokens! messages! system stream temperature top_p top_k stop_sequences metadata tools tool_choice " +
  "thinking output_config service_tier context_management container mcp_servers";

function checkBody(value: Fields): void {
  const body = fieldsOf(value, "body", BODY);
  const limit = Number(body["max_tokens"]);
  assert.ok(Number.isInteger(limit) && limit > 0, "max_tokens: must be greater than or equal to 1");
  const system = body["system"];
  if (Array.isArray(system)) system.forEach((block, at) => checkSystem(block, `system.${at}`));
  else if (system !== undefined) checkText(system, "system");
  const needsThoughts = checkThinking(body, limit);
  checkMessages(listOf(body["messages"], "messages"), needsThoughts);
  checkTools(body, ["enabled", "adaptive"].includes(String((body["thinking"] as Fields | undefined)?.["type"])));
  const marks = JSON.stringify(body).split('"cache_control"').length - 1;
  assert.ok(marks <= 4, `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
  checkOutput(body["output_config"]);
}

function checkSystem(block: unknown, path: string): void {
  checkText(fieldsOf(block, path, "type! text! cache_control citations")["text"], path);
}

/** @returns whether turns with calls have to begin with a thought; an adaptive model does not insist */
function checkThinking(body: Fields, limit: number): boolean {
  if (body["thinking"] === undefined) return false;
  const { type, budget_tokens: budget } = fieldsOf(body["thinking"], "thinking", "type! budget_tokens display");
  assert.ok(["enabled", "disabled", "adaptive"].includes(String(type)), "thinking.type is not known");
  if (type === "disabled") return false;
  if (type === "enabled") {
    assert.ok(Number(budget) >= 1024, "thinking.enabled.budget_tokens: must be greater than or equal to 1024");
    assert.ok(Number(budget) < limit, "`max_tokens` must be greater than `thinking.budget_tokens`");
  }
  for (const name of ["temperature", "top_k"])
    assert.equal(body[name], undefined, `\`${name}\` may not be set when thinking is enabled`);
  return type === "enabled";
}

interface Turn {
  readonly role: unknown;
  readonly blocks: readonly Fields[];
}

function checkMessages(messages: readonly unknown[], isThinking: boolean): void {
  const turns = messages.map((message, at) => checkMessage(message, `messages.${at}`));
  assert.equal(turns[0]?.role, "user", "messages: first message must use the user role");
  turns.forEach((turn, at) => {
    const calls = idsIn(turn, "tool_use", "id");
    const results = idsIn(turns[at + 1], "tool_result", "tool_use_id");
    const open = calls.filter((id) => !results.includes(id));
    assert.deepEqual(open, [], "`tool_use` ids were found without `tool_result` blocks immediately after");
    const before = idsIn(turns[at - 1], "tool_use", "id");
    for (const id of idsIn(turn, "tool_result", "tool_use_id"))
      assert.ok(before.includes(id), `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(id)}`);
    if (turn.role === "user") {
      const other = turn.blocks.findIndex(({ type }) => type !== "tool_result");
      const last = turn.blocks.findLastIndex(({ type }) => type === "tool_result");
      assert.ok(other === -1 || last < other, "tool_result blocks must come first in a user message");
    }
  });
  const last = turns.at(-1);
  const answered = turns.at(-2);
  // A model that thinks has to find its thoughts in front of the calls that it now gets the results of.
  if (isThinking && answered !== undefined && idsIn(last, "tool_result", "tool_use_id").length > 0)
    assert.match(
      String(answered.blocks[0]?.["type"]),
      /thinking$/,
      "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block",
    );
}

function idsIn(turn: Turn | undefined, type: string, name: string): unknown[] {
  return (turn?.blocks ?? []).filter((block) => block["type"] === type).map((block) => block[name]);
}

function checkMessage(message: unknown, path: string): Turn {
  const { role, content } = fieldsOf(message, path, "role! content!");
  assert.ok(role === "user" || role === "assistant", `${path}.role: Input should be 'user' or 'assistant'`);
  if (typeof content === "string") {
    checkText(content, path);
    return { role, blocks: [] };
  }
  const blocks = listOf(content, `${path}.content`).map((block, at) => checkBlock(block, `${path}.content.${at}`));
  const own = role === "user" ? /^(?:text|image|document|tool_result)$/ : /^(?:text|tool_use|(?:redacted_)?thinking)$/;
  for (const { type } of blocks) assert.match(String(type), own, `${path}: ${String(type)} is not allowed here`);
  return { role, blocks };
}

const BLOCKS: Readonly<Record<string, string>> = {
  text: "type! text! cache_control citations",
  image: "type! source! cache_control",
  document: "type! source! title context citations cache_control",
  tool_use: "type! id! name! input! cache_control caller",
  tool_result: "type! tool_use_id! content is_error cache_control",
  thinking: "type! thinking! signature!",
  redacted_thinking: "type! data!",
};

function checkBlock(value: unknown, path: string): Fields {
  const type = String((value as Fields)["type"]);
  const block = fieldsOf(value, path, BLOCKS[type] ?? assert.fail(`${path}.type: ${type} is not known`));
  if (type === "text") checkText(block["text"], path);
  if (type === "image" || type === "document") checkSource(block["source"], `${path}.source`, type);
  if (type === "thinking") assert.ok(block["signature"] !== "", `${path}: Invalid \`signature\` in \`thinking\` block`);
  if (type === "tool_use") {
    assert.match(String(block["id"]), /^[a-zA-Z0-9_-]+$/, `${path}.id: String should match pattern`);
    assert.match(String(block["name"]), NAME, `${path}.name: String should match pattern`);
    fieldsOf(block["input"], `${path}.input`, Object.keys(block["input"] as Fields).join(" "));
  }
  if (type === "tool_result" && Array.isArray(block["content"]))
    block["content"].forEach((part, at) => checkBlock(part, `${path}.content.${at}`));
  return block;
}

function checkSource(value: unknown, path: string, type: string): void {
  const source = fieldsOf(value, path, "type! media_type data url file_id");
  if (source["type"] === "url") assert.match(String(source["url"]), /^https?:/, `${path}.url`);
  if (source["type"] !== "base64") return;
  assert.match(String(source["data"]), BASE64, `${path}.data: must be base64`);
  const known = type === "image" ? IMAGES : ["application/pdf"];
  assert.ok(known.includes(String(source["media_type"])), `${path}.media_type: Input should be ${known.join(", ")}`);
}

function checkTools({ tools, tool_choice: choice }: Fields, isThinking: boolean): void {
  const names = new Set<unknown>();
  if (tools !== undefined)
    for (const [at, value] of listOf(tools, "tools").entries()) {
      const path = `tools.${at}`;
      const tool = fieldsOf(value, path, "name! description input_schema! cache_control type strict");
      assert.match(String(tool["name"]), NAME, `${path}.name: String should match pattern`);
      assert.ok(!names.has(tool["name"]), "tools: Tool names must be unique.");
      names.add(tool["name"]);
      const schema = tool["input_schema"] as Fields;
      assert.equal(schema["type"], "object", `${path}.input_schema.type: Field required`);
    }
  if (choice === undefined) return;
  assert.ok(tools !== undefined, "tool_choice may only be specified while providing tools");
  const { type } = fieldsOf(choice, "tool_choice", "type! name disable_parallel_tool_use");
  if (isThinking) assert.match(String(type), /^(?:auto|none)$/, "Thinking may not be enabled when tool_choice forces");
}

function checkOutput(value: unknown): void {
  if (value === undefined) return;
  const { format } = fieldsOf(value, "output_config", "effort format");
  if (format === undefined) return;
  const { type, schema } = fieldsOf(format, "output_config.format", "type! schema!");
  assert.equal(type, "json_schema");
  assert.equal((schema as Fields)["type"], "object", "output_config.format.schema: type is missing");
  assert.equal(findSchemaFault(schema, "output_config.format.schema"), undefined);
}

const LIMITS = /^(?:(?:exclusive)?(?:min|max)imum|multipleOf|(?:min|max)Length|maxItems|(?:min|max)Properties)$/i;

/** Checks the form of an answer, for this vendor's models at any provider. @returns undefined for one in order */
export function findSchemaFault(value: unknown, path: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { type, additionalProperties } = value as Fields;
  if (type === "object" && additionalProperties !== false)
    return `${path}: For 'object' type, 'additionalProperties' must be explicitly set to false`;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === "number" && LIMITS.test(name)) return `${path}: property '${name}' is not supported`;
    const fault = findSchemaFault(member, `${path}.${name}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
