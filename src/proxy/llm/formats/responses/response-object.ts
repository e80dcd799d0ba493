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

/** The members that repeat the request, with their values where the request leaves them out. */
const REQUEST_MEMBERS: JsonObject = {
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

/** A response object in the order of the API. Copies of it are filled in, which the engine makes fast. */
const TEMPLATE: JsonObject = {
  id: "",
  object: "response",
  created_at: 0,
  status: "in_progress",
  error: null,
  incomplete_details: null,
  access_programs: null,
  model: "",
  output: [],
  ...REQUEST_MEMBERS,
  service_tier: "default",
  usage: null,
};

/** What response objects say of their request; a stream keeps it to its end, and not the conversation in the request. */
export interface ResponseContext {
  /** The model that the client asked for. */
  readonly model: string;
  /** A response object with the time and the members that repeat the request. */
  readonly template: JsonObject;
}

export function contextOfResponse({ request, createdAt }: AnswerContext): ResponseContext {
  const template: JsonObject = { ...TEMPLATE, created_at: createdAt };
  for (const [name, value] of Object.entries(request))
    if (Object.hasOwn(REQUEST_MEMBERS, name)) template[name] = value ?? REQUEST_MEMBERS[name];
  for (const name of ["text", "reasoning"])
    template[name] = { ...objectOf(REQUEST_MEMBERS[name]), ...objectOf(request[name]) };
  return { model: stringOf(request["model"]) ?? "", template };
}

export function printResponse(state: ResponseState, { model: asked, template }: ResponseContext): JsonObject {
  const { id, model, output, stop, error, usage, serviceTier } = state;
  const incomplete = stop === undefined ? undefined : INCOMPLETE[stop.reason];
  return {
    ...template,
    id: `resp_${id}`,
    status:
      error !== undefined ? "failed" : stop === undefined ? "in_progress" : incomplete ? "incomplete" : "completed",
    error: error === undefined ? null : { code: errorCode(error), message: error.message },
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    model: model === "" ? asked : model,
    // An item that was never completed leaves a gap.
    output: output.filter((item) => item !== undefined),
    service_tier: serviceTier ?? "default",
    usage: usage === undefined ? null : printUsage(usage),
  };
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
