/** Asks a gateway in the format of a client, and puts a streamed answer together into one of the same shape each time. */
import type { ClientName, Fields } from "./bodies.ts";

export interface Question {
  readonly client: ClientName;
  readonly body: Fields;
  readonly model: string;
  readonly isStreamed: boolean;
}

export interface Access {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the answer; of an error the status and the body. */
export async function ask({ url, headers }: Access, question: Question): Promise<Fields> {
  const { client, body, model, isStreamed } = question;
  const isGemini = client === "Gemini";
  const sent = { ...(isGemini ? {} : { model }), ...body, ...(isStreamed && !isGemini ? { stream: true } : {}) };
  // A connection for each request: servers close idle ones, and a request that meets the end of one is not repeated.
  const fields = { "content-type": "application/json", connection: "close", "anthropic-version": "2023-06-01" };
  const answer = await fetch(`${url}${pathOf(question)}`, {
    method: "POST",
    headers: { ...fields, ...headers },
    body: JSON.stringify(sent),
  });
  const text = await answer.text();
  if (answer.status !== 200) return { status: answer.status, error: text };
  return isStreamed ? FOLDS[client](eventsIn(text)) : (JSON.parse(text) as Fields);
}

function pathOf({ client, model, isStreamed }: Question): string {
  switch (client) {
    case "Completions":
      return "/v1/chat/completions";
    case "Messages":
      return "/v1/messages";
    case "Responses":
      return "/v1/responses";
    case "Gemini":
      return `/v1beta/models/${model}:${isStreamed ? "streamGenerateContent?alt=sse" : "generateContent"}`;
  }
}

function eventsIn(text: string): Event[] {
  return text
    .split(/\r?\n\r?\n/)
    .flatMap((event) => /^data: ?(.*)$/m.exec(event)?.[1] ?? [])
    .filter((data) => data !== "[DONE]" && data !== "")
    .map((data) => JSON.parse(data) as Event);
}

/** An event of any of the formats, with the members that are read here. */
interface Event {
  readonly type?: string;
  readonly index?: number;
  readonly error?: unknown;
  readonly usage?: Fields;
  readonly response?: Fields;
  readonly choices?: readonly {
    readonly delta?: Fields & { readonly tool_calls?: readonly (Fields & { readonly index: number })[] };
    readonly finish_reason?: string | null;
  }[];
  readonly message?: Fields;
  readonly content_block?: Fields;
  readonly delta?: Fields;
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly Fields[] };
    readonly finishReason?: string;
  }[];
  readonly usageMetadata?: Fields;
}

const FOLDS: Readonly<Record<ClientName, (events: readonly Event[]) => Fields>> = {
  Completions: foldChunks,
  Messages: foldBlocks,
  Responses: (events) => {
    const last = events.findLast(({ type = "" }) => /^(?:error|response\.(?:completed|incomplete|failed))$/.test(type));
    return { last: last?.type, ...(last?.response ?? { error: last?.error }) };
  },
  Gemini: foldCandidates,
};

function append(into: Fields, name: string, piece: unknown): void {
  if (typeof piece === "string" && piece !== "") into[name] = `${(into[name] as string | undefined) ?? ""}${piece}`;
}

function foldChunks(events: readonly Event[]): Fields {
  const message: Fields = {};
  const calls: Fields[] = [];
  const folded: Fields = { message };
  for (const { choices = [], usage, error } of events) {
    if (error !== undefined) folded["error"] = error;
    if (usage !== undefined && usage !== null) folded["usage"] = usage;
    for (const { delta = {}, finish_reason: finish } of choices) {
      if (finish !== undefined && finish !== null) folded["finish_reason"] = finish;
      for (const name of ["role", "content", "reasoning_content", "refusal"]) append(message, name, delta[name]);
      for (const { index, id, function: called } of delta.tool_calls ?? []) {
        const call = (calls[index] ??= {});
        append(call, "id", id);
        for (const name of ["name", "arguments"]) append(call, name, (called as Fields | undefined)?.[name]);
      }
    }
  }
  if (calls.length > 0) message["tool_calls"] = calls;
  return folded;
}

function foldBlocks(events: readonly Event[]): Fields {
  const content: Fields[] = [];
  const folded: Fields = { content };
  for (const { type, index = 0, message, content_block: block, delta = {}, usage, error } of events) {
    if (type === "error") folded["error"] = error;
    if (type === "message_start") folded["start"] = message;
    if (type === "content_block_start") content[index] = { ...block };
    if (type === "content_block_delta") {
      const into = (content[index] ??= {});
      append(into, "text", delta["text"]);
      append(into, "thinking", delta["thinking"]);
      append(into, "signature", delta["signature"]);
      append(into, "arguments", delta["partial_json"]);
    }
    if (type === "message_delta") Object.assign(folded, { ...delta, usage });
    if (type === "message_stop") folded["last"] = type;
  }
  return folded;
}

function foldCandidates(events: readonly Event[]): Fields {
  const parts: Fields[] = [];
  const folded: Fields = { parts };
  for (const { candidates = [], usageMetadata, error } of events) {
    if (error !== undefined) folded["error"] = error;
    if (usageMetadata !== undefined) folded["usageMetadata"] = usageMetadata;
    for (const { content, finishReason } of candidates) {
      if (finishReason !== undefined && finishReason !== null) folded["finishReason"] = finishReason;
      for (const part of content?.parts ?? []) {
        const last = parts.at(-1);
        const joins = typeof part["text"] === "string" && typeof last?.["text"] === "string";
        if (joins && last["thought"] === part["thought"]) append(last, "text", part["text"]);
        else if (part["text"] !== "") parts.push({ ...part });
      }
    }
  }
  return folded;
}
