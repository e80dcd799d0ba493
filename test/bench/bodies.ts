/**
 * Request bodies for the load generator, which reads them from files: those in bodies/, and generated ones, which are
 * long or differ from a file in one word.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CACHE } from "./install.ts";

const SENTENCE = "Gateways sit between clients and models and should cost nothing. ";
const INSTRUCTIONS = "You are a helpful assistant for a benchmark. ".repeat(6);
const QUESTION = `Summarise the following text in one sentence. ${SENTENCE.repeat(10)}`;
const PROMPT_BYTES = 64 * 1024;
const TOOLS = 40;
const TOOL_BYTES = 5 * 1024;

/** Generated bodies, by the name that rows use. Their texts equal those of the files. */
const MADE: Readonly<Record<string, () => object>> = {
  "messages.json": () => messages("gpt-4o-mini"),
  "messages.sse.json": () => ({ ...messages("gpt-4o-mini"), stream: true }),
  "responses.json": () => responses(),
  "responses.sse.json": () => ({ ...responses(), stream: true }),
  "tools.json": () => ({ ...messages("claude-sonnet-4-5"), tools: Array.from({ length: TOOLS }, (_, at) => tool(at)) }),
  "agent.json": () => agentCall(),
  "prompt.json": () => ({
    model: "gpt-4o-mini",
    messages: [{ role: "user", content: SENTENCE.repeat(PROMPT_BYTES / SENTENCE.length) }],
  }),
};

/** @param name of a file in bodies/, or of a generated body @returns the path of its file */
export function bodyFile(name: string): string {
  const make = MADE[name];
  if (make === undefined) return join(import.meta.dirname, "bodies", name);
  const folder = join(CACHE, "bodies");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(make()));
  return file;
}

export function readBodyFile(name: string): Buffer {
  return readFileSync(bodyFile(name));
}

function messages(model: string): object {
  const turns = [{ role: "user", content: QUESTION }];
  return { model, system: INSTRUCTIONS, messages: turns, temperature: 0.2, max_tokens: 256 };
}

function responses(): object {
  const limits = { temperature: 0.2, max_output_tokens: 256 };
  return { model: "gpt-4o-mini", instructions: INSTRUCTIONS, input: QUESTION, store: false, ...limits };
}

/** A call of the JSON-RPC binding of A2A 0.3. */
function agentCall(): object {
  const parts = [{ kind: "text", text: INSTRUCTIONS + QUESTION }];
  const message = { kind: "message", role: "user", messageId: "m-1", parts };
  return { jsonrpc: "2.0", id: 1, method: "message/send", params: { message } };
}

/** Returns a tool with a description of one page, as coding agents send them. */
function tool(at: number): object {
  const parameters = Array.from({ length: 12 }, (_, each) => [
    `parameter_${each}`,
    { type: "string", description: SENTENCE },
  ]);
  const input_schema = { type: "object", properties: Object.fromEntries(parameters), required: ["parameter_0"] };
  const rest = TOOL_BYTES - JSON.stringify(input_schema).length;
  return { name: `tool_${at}`, description: SENTENCE.repeat(rest / SENTENCE.length), input_schema };
}
