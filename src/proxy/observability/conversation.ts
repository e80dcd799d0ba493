/**
 * The text of an LLM conversation (`llm.prompt`, `llm.completion`, `llm.toolCalls`; docs/reference/expressions.md), for
 * reports that read it. It is extracted after the end, from the bodies as the client sent and received them; requests
 * without such a report pay nothing.
 */
import type { Reads } from "../../cel/expression.ts";
import { isRecord } from "../../lib/is-record.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { ReportedExchange, RoutedExchange } from "../exchange/exchange.ts";
import { listOf, objectOf, parseObject, stringOf, type JsonObject } from "../llm/shared/json.ts";
import { SseParser } from "../llm/stream/sse.ts";

const CONTENT = ["llm.prompt", "llm.completion", "llm.toolCalls", "llm.*"];

export function readsConversation({ attributes }: Reads): boolean {
  return CONTENT.some((name) => attributes.has(name));
}

/** Returns whether the response body has to be kept for it. */
export function hasConversation({
  reports,
  backend,
}: {
  readonly reports: { readonly readsConversation: boolean };
  readonly backend: RoutedExchange["backend"];
}): boolean {
  return reports.readsConversation && backend?.type === "ai";
}

/** Adds the conversation to the root `llm`; parts that cannot be parsed, or were too large to keep, are omitted. */
export function addConversation(exchange: ReportedExchange): void {
  const root = exchange.root("llm");
  if (!isRecord(root)) return;
  const conversation: Record<string, unknown> = {};
  const request = Buffer.isBuffer(exchange.requestBody) ? parseObject(exchange.requestBody) : undefined;
  if (request !== undefined) conversation["prompt"] = listOf(request["messages"]).map(turnOf);
  const answer = exchange.keptReply;
  const choices = answer === undefined ? [] : choicesOf(answer);
  if (choices.length > 0) {
    conversation["completion"] = choices.map(({ text }) => text);
    conversation["toolCalls"] = choices.flatMap(({ calls }) => calls);
  }
  exchange.setRoot("llm", { ...root, ...conversation });
}

function turnOf(message: JsonObject[string]): Record<string, unknown> {
  const { role = null, content = null } = objectOf(message) ?? {};
  return { role, content };
}

interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

interface Choice {
  text: string;
  readonly calls: ToolCall[];
}

/** @param body a whole response, or the events of a stream as far as they were received */
function choicesOf(body: Buffer): readonly Choice[] {
  const choices: Choice[] = [];
  const whole = parseObject(body);
  if (whole === undefined) readEvents(body, choices);
  else addChoices(whole, "message", choices);
  // An index without a choice leaves a hole in the list.
  return choices.filter((choice) => choice !== undefined);
}

function readEvents(body: Buffer, choices: Choice[]): void {
  const parser = new SseParser(body.length + 1, (data) => {
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event !== undefined) addChoices(event, "delta", choices);
  });
  try {
    parser.push(body);
    parser.end();
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
  }
}

/** A larger index is a mistake of the provider and is ignored. */
const MAX_INDEX = 127;

function addChoices(answer: JsonObject, part: "message" | "delta", choices: Choice[]): void {
  for (const [at, item] of listOf(answer["choices"]).entries()) {
    const choice = objectOf(item);
    const index = indexOf(choice, at);
    if (choice === undefined || index === undefined) continue;
    const known = (choices[index] ??= { text: "", calls: [] });
    const message = objectOf(choice[part]);
    known.text += stringOf(message?.["content"]) ?? "";
    addCalls(listOf(message?.["tool_calls"]), known.calls);
  }
}

/**
 * Joins the parts of tool calls. In a stream each part carries the index of its call; the first part has the id and the
 * name.
 */
function addCalls(parts: readonly JsonObject[string][], calls: ToolCall[]): void {
  for (const [at, part] of parts.entries()) {
    const call = objectOf(part);
    const index = indexOf(call, at);
    if (call === undefined || index === undefined) continue;
    const known = (calls[index] ??= { id: "", name: "", arguments: "" });
    const called = objectOf(call["function"]);
    known.id ||= stringOf(call["id"]) ?? "";
    known.name ||= stringOf(called?.["name"]) ?? "";
    known.arguments += stringOf(called?.["arguments"]) ?? "";
  }
}

function indexOf(item: JsonObject | undefined, otherwise: number): number | undefined {
  const index = item?.["index"] ?? otherwise;
  return typeof index === "number" && Number.isInteger(index) && index >= 0 && index <= MAX_INDEX ? index : undefined;
}
