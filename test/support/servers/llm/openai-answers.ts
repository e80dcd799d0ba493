/** What the strict OpenAI server answers, in the shapes of its two chat formats, as JSON and as events. */

export interface OpenAiAnswer {
  readonly reasoning?: { readonly text: string; readonly sealed: string };
  readonly text?: string;
  readonly refusal?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** Whether the answer ends at the limit of tokens. */
  readonly isCut?: boolean;
  /** Answered in place of everything else. */
  readonly error?: {
    readonly status: number;
    readonly type: string;
    readonly message: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
}

type Fields = Record<string, unknown>;

const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 7,
  total_tokens: 27,
  prompt_tokens_details: { cached_tokens: 8 },
};
const RESPONSE_USAGE = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 27,
};

export function printError({ type, message }: { readonly type: string; readonly message: string }): Fields {
  return { error: { message, type, param: null, code: null } };
}

/** Returns a text in pieces, as models give it. */
function pieces(text: string): string[] {
  return text.match(/[^]{1,4}/g) ?? [];
}

function finishReason({ calls, isCut }: OpenAiAnswer): string {
  return isCut === true ? "length" : calls === undefined ? "stop" : "tool_calls";
}

export function printCompletion(answer: OpenAiAnswer, model: unknown): Fields {
  const { text, refusal = null, calls, reasoning } = answer;
  const message: Fields = { role: "assistant", content: text ?? null, refusal };
  if (reasoning !== undefined) message["reasoning_content"] = reasoning.text;
  if (calls !== undefined)
    message["tool_calls"] = calls.map(({ id, ...made }) => ({ id, type: "function", function: made }));
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(answer) };
  return { id: "chatcmpl-1", object: "chat.completion", created: 1, model, choices: [choice], usage: USAGE };
}

/** @param showsUsage as the request asks */
export function streamCompletion(answer: OpenAiAnswer, model: unknown, showsUsage: boolean): string[] {
  const chunk = (choices: readonly Fields[], usage?: Fields): string =>
    `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model, choices, ...(usage && { usage }) })}\n\n`;
  const delta = (fields: Fields, finish: string | null = null): string =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);
  const { text = "", refusal = "", calls = [], reasoning } = answer;
  return [
    delta({ role: "assistant", content: "", refusal: null }),
    ...pieces(reasoning?.text ?? "").map((reasoning_content) => delta({ reasoning_content })),
    ...pieces(text).map((content) => delta({ content })),
    ...pieces(refusal).map((piece) => delta({ refusal: piece })),
    ...calls.flatMap(({ id, name, arguments: given }, index) => [
      delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
      ...pieces(given).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    delta({}, finishReason(answer)),
    ...(showsUsage ? [chunk([], USAGE)] : []),
    "data: [DONE]\n\n",
  ];
}

function outputOf({ reasoning, text, refusal, calls = [] }: OpenAiAnswer): Fields[] {
  const content: Fields[] = [];
  if (text !== undefined) content.push({ type: "output_text", annotations: [], logprobs: [], text });
  if (refusal !== undefined) content.push({ type: "refusal", refusal });
  const summary = [{ type: "summary_text", text: reasoning?.text }];
  return [
    ...(reasoning === undefined
      ? []
      : [{ id: "rs_1", type: "reasoning", summary, encrypted_content: reasoning.sealed }]),
    ...(content.length === 0
      ? []
      : [{ id: "msg_1", type: "message", status: "completed", content, role: "assistant" }]),
    ...calls.map(({ id, ...made }) => ({
      id: `fc_${id}`,
      type: "function_call",
      status: "completed",
      call_id: id,
      ...made,
    })),
  ];
}

/** Members of a response that describe its request. */
function echoOf(request: Fields): Fields {
  const { instructions = null, tools = [], temperature = 1, top_p = 1, metadata = {} } = request;
  const { tool_choice = "auto", parallel_tool_calls = true, text = { format: { type: "text" } } } = request;
  return { instructions, tools, temperature, top_p, metadata, tool_choice, parallel_tool_calls, text };
}

export function printResponse(answer: OpenAiAnswer, request: Fields): Fields {
  return responseOf(request, answer.isCut === true ? "incomplete" : "completed", outputOf(answer));
}

function responseOf(request: Fields, status: string, output: readonly Fields[]): Fields {
  const incomplete_details = status === "incomplete" ? { reason: "max_output_tokens" } : null;
  const usage = status === "in_progress" ? null : RESPONSE_USAGE;
  const head = { id: "resp_1", object: "response", created_at: 1, model: request["model"], status, error: null };
  return { ...head, incomplete_details, output, ...echoOf(request), service_tier: "default", usage };
}

/** Events as the service sends them, with numbers from 0 and some that clients skip. */
export function streamResponse(answer: OpenAiAnswer, request: Fields): string[] {
  let sequence_number = 0;
  const event = (type: string, members: Fields): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...members })}\n\n`;
  const started = responseOf(request, "in_progress", []);
  const final = printResponse(answer, request);
  return [
    event("response.created", { response: started }),
    event("response.in_progress", { response: started }),
    ...outputOf(answer).flatMap((item, output_index) => streamItem(item, output_index, event)),
    event(`response.${String(final["status"])}`, { response: final }),
  ];
}

type Emit = (type: string, members: Fields) => string;

function streamItem(item: Fields, output_index: number, event: Emit): string[] {
  const at = { item_id: item["id"], output_index };
  const bare = { content: [], summary: [], arguments: "", encrypted_content: undefined };
  const kept = Object.entries(bare).filter(([name]) => name in item);
  const inside = { message: streamMessage, reasoning: streamReasoning, function_call: streamCall }[
    String(item["type"])
  ];
  return [
    event("response.output_item.added", {
      output_index,
      item: { ...item, ...Object.fromEntries(kept), status: "in_progress" },
    }),
    ...(inside?.(item, at, event) ?? []),
    event("response.output_item.done", { output_index, item }),
  ];
}

function streamMessage(item: Fields, at: Fields, event: Emit): string[] {
  return (item["content"] as Fields[]).flatMap((part, content_index) => {
    const place = { ...at, content_index };
    const isText = part["type"] === "output_text";
    const member = isText ? "text" : "refusal";
    const name = isText ? "response.output_text" : "response.refusal";
    const whole = String(part[member]);
    const logprobs = isText ? { logprobs: [] } : {};
    return [
      event("response.content_part.added", { ...place, part: { ...part, [member]: "" } }),
      ...pieces(whole).map((delta) => event(`${name}.delta`, { ...place, delta, ...logprobs, obfuscation: "xYz" })),
      event(`${name}.done`, { ...place, [member]: whole, ...logprobs }),
      event("response.content_part.done", { ...place, part }),
    ];
  });
}

function streamReasoning(item: Fields, at: Fields, event: Emit): string[] {
  return (item["summary"] as { text: string }[]).flatMap((part, summary_index) => {
    const place = { ...at, summary_index };
    return [
      event("response.reasoning_summary_part.added", { ...place, part: { ...part, text: "" } }),
      ...pieces(part.text).map((delta) => event("response.reasoning_summary_text.delta", { ...place, delta })),
      event("response.reasoning_summary_text.done", { ...place, text: part.text }),
      event("response.reasoning_summary_part.done", { ...place, part }),
    ];
  });
}

function streamCall(item: Fields, at: Fields, event: Emit): string[] {
  const whole = String(item["arguments"]);
  return [
    ...pieces(whole).map((delta) => event("response.function_call_arguments.delta", { ...at, delta })),
    event("response.function_call_arguments.done", { ...at, arguments: whole, name: item["name"] }),
  ];
}
