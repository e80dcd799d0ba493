/**
 * Builds the response object that whole answers and the first and last events of streams carry. The official clients
 * declare most members as required, so members that describe the request repeat it or its defaults.
 */
import { hash, randomBytes } from "node:crypto";
import type { Stop } from "../../conversation/answer.ts";
import type { VendorError } from "../../conversation/events.ts";
import { objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AnswerContext } from "../chat-format.ts";
import { printUsage } from "./usage.ts";

interface ResponseState {
  readonly id: string;
  readonly model: string;
  readonly output: readonly JsonObject[];
  /** undefined while the answer is not complete. */
  readonly stop?: Stop;
  readonly error?: VendorError;
  readonly usage?: Usage | undefined;
  readonly serviceTier?: string | undefined;
}

/** Values of members that the request leaves out. */
const DEFAULTS: JsonObject = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null,
};

/** What response objects say of their request; a stream keeps it to its end, and not the conversation in the request. */
export interface ResponseContext {
  readonly createdAt: number;
  /** The model that the client asked for. */
  readonly model: string;
  /** Members that repeat the request. */
  readonly repeated: JsonObject;
}

export function contextOfResponse({ request, createdAt }: AnswerContext): ResponseContext {
  return { createdAt, model: stringOf(request["model"]) ?? "", repeated: repeatRequest(request) };
}

export function printResponse(state: ResponseState, context: ResponseContext): JsonObject {
  const { id, model, output, stop, error, usage, serviceTier } = state;
  const incomplete = stop === undefined ? undefined : INCOMPLETE[stop.reason];
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: context.createdAt,
    status:
      error !== undefined ? "failed" : stop === undefined ? "in_progress" : incomplete ? "incomplete" : "completed",
    error: error === undefined ? null : { code: errorCode(error), message: error.message },
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    access_programs: null,
    model: model === "" ? context.model : model,
    // An item that was never completed leaves a gap.
    output: output.filter((item) => item !== undefined),
    ...context.repeated,
    service_tier: serviceTier ?? "default",
    usage: usage === undefined ? null : printUsage(usage),
  };
}

function repeatRequest(request: JsonObject): JsonObject {
  const repeated: JsonObject = {};
  for (const [name, value] of Object.entries(DEFAULTS)) repeated[name] = request[name] ?? value;
  repeated["text"] = { ...objectOf(DEFAULTS["text"]), ...objectOf(request["text"]) };
  repeated["reasoning"] = { ...objectOf(DEFAULTS["reasoning"]), ...objectOf(request["reasoning"]) };
  return repeated;
}

/** Reasons for which an answer ends early, in the words of the API. */
const INCOMPLETE: Readonly<Record<Stop["reason"], "max_output_tokens" | "content_filter" | undefined>> = {
  end: undefined,
  stop_sequence: undefined,
  calls: undefined,
  pause: undefined,
  length: "max_output_tokens",
  context: "max_output_tokens",
  refusal: "content_filter",
};

/** Returns the status of the item that is the last one when an answer stops. */
export function statusOf(reason: Stop["reason"]): string {
  return INCOMPLETE[reason] === undefined ? "completed" : "incomplete";
}

/** Codes by the types of errors; clients decide by the code whether they try again. */
const CODES: ReadonlyMap<string | undefined, string> = new Map([
  ["invalid_request_error", "invalid_prompt"],
  ["rate_limit_error", "rate_limit_exceeded"],
]);

/** Keeps a code in the spelling of OpenAI, such as `context_length_exceeded`; others follow from the type. */
export function errorCode({ type, code }: VendorError): string {
  return code !== undefined && /^[a-z_]+$/.test(code) ? code : (CODES.get(type) ?? "server_error");
}

/**
 * Returns 16 hexadecimal digits from the identifier that the provider gave its answer; random ones when it gave none.
 * The identifiers of the response and of its items consist of them.
 */
export function identifierOf(id: string): string {
  return id === "" ? randomBytes(8).toString("hex") : hash("sha256", id, "hex").slice(0, 16);
}

export function outputText(text: string, annotations: readonly Json[]): JsonObject {
  return { type: "output_text", annotations: [...annotations], logprobs: [], text };
}

export function refusalText(text: string): JsonObject {
  return { type: "refusal", refusal: text };
}

export function messageItem(itemId: string, content: readonly JsonObject[], status: string): JsonObject {
  return { id: `msg_${itemId}`, type: "message", status, role: "assistant", content: [...content] };
}

/**
 * @param text undefined for a thought that only its vendor can read
 * @param sealed proof for its vendor, which clients send back with their next request
 */
export function reasoningItem(itemId: string, text: string | undefined, sealed: string | undefined): JsonObject {
  return {
    id: `rs_${itemId}`,
    type: "reasoning",
    summary: text === undefined ? [] : [{ type: "summary_text", text }],
    ...(sealed === undefined ? {} : { encrypted_content: sealed }),
  };
}
