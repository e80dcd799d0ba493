/**
 * All strict vendors at once, with one neutral answer that each of them sends in its own format. The matrix of
 * client formats and providers uses it.
 */
import type { ProofContext } from "../../proofs/prove.ts";
import { findMessagesFault } from "./anthropic-checks.ts";
import { printMessage, startAnthropic, streamMessage, type AnthropicServer } from "./anthropic.ts";
import { startBedrock, type BedrockServer } from "./bedrock.ts";
import { startGoogle, type GoogleServer } from "./google.ts";
import { printCompletion, streamCompletion, type OpenAiAnswer } from "./openai-answers.ts";
import { findCompletionsFault } from "./openai-checks.ts";
import { startOpenAi, type OpenAiServer } from "./openai.ts";

type Fields = Record<string, unknown>;

export interface Vendors {
  readonly openai: OpenAiServer;
  readonly anthropic: AnthropicServer;
  readonly gemini: GoogleServer;
  readonly vertex: GoogleServer;
  readonly bedrock: BedrockServer;
}

export type VendorName = keyof Vendors;

export const LOCATION = "europe-west1";

export async function startVendors(context: Pick<ProofContext, "after">): Promise<Vendors> {
  const bases = ["/v1", "/openai/v1", "/openai/deployments/gpt-9", "/openai", "/api/projects/lab/openai/v1", ""];
  const [openai, anthropic, gemini, vertex, bedrock] = await Promise.all([
    startOpenAi(context, bases),
    startAnthropic(context),
    startGoogle(context),
    startGoogle(context, LOCATION),
    startBedrock(context),
  ]);
  return { openai, anthropic, gemini, vertex, bedrock };
}

/** Sets what every vendor answers from now on. @param model decides the format of Google's paths for other vendors */
export function setAnswer(vendors: Vendors, answer: OpenAiAnswer, model: string): void {
  vendors.openai.answer = answer;
  vendors.anthropic.answer = answer;
  vendors.bedrock.answer = bedrockAnswer(answer);
  const isClaude = model.includes("claude");
  const foreign = isClaude
    ? { body: printMessage(answer, model), events: streamMessage(answer, model) }
    : { body: signed(printCompletion(answer, model), answer), events: chunksOf(answer, model) };
  vendors.gemini.answer = vendors.vertex.answer = { ...googleAnswer(answer), ...foreign };
}

/** Chunks of Google's compatible paths, whose calls are signed as those of its own format are. */
function chunksOf(answer: OpenAiAnswer, model: string): Fields[] {
  const events = streamCompletion(answer, model, true).map((event) => event.slice("data: ".length).trim());
  return events.filter((event) => event !== "[DONE]").map((event) => signed(JSON.parse(event) as Fields, answer));
}

interface Called {
  readonly choices: readonly Partial<
    Record<"message" | "delta", { readonly tool_calls?: readonly { id?: string; extra_content?: object }[] }>
  >[];
}

function signed(completion: Fields, answer: OpenAiAnswer): Fields {
  // printCompletion and streamCompletion have made it.
  const { message, delta } = (completion as unknown as Called).choices[0] ?? {};
  const [call] = message?.tool_calls ?? delta?.tool_calls ?? [];
  if (call?.id !== undefined && call.id === answer.calls?.[0]?.id)
    call.extra_content = { google: { thought_signature: signatureOf(answer) } };
  return completion;
}

/** The newer models of Google sign the first call of an answer, also without thoughts. */
function signatureOf({ reasoning }: OpenAiAnswer): string {
  return reasoning?.sealed ?? "bm90aGluZw==";
}

const GOOGLE_ERRORS: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
};

function googleAnswer(answer: OpenAiAnswer): GoogleServer["answer"] {
  const { reasoning, text, refusal, calls = [], isCut, error } = answer;
  const parts = [
    ...(reasoning === undefined ? [] : [{ text: reasoning.text, thought: true }]),
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ name, arguments: given }, at) => ({
      functionCall: { name, args: JSON.parse(given) as Fields },
      ...(at > 0 ? {} : { thoughtSignature: signatureOf(answer) }),
    })),
  ];
  return {
    parts,
    finishReason: isCut === true ? "MAX_TOKENS" : refusal === undefined ? "STOP" : "SAFETY",
    ...(error && { error: { ...error, name: GOOGLE_ERRORS[error.status] ?? "UNAVAILABLE" } }),
  };
}

function bedrockAnswer({ reasoning, text, refusal, calls = [], isCut, error }: OpenAiAnswer): BedrockServer["answer"] {
  const said = text ?? refusal;
  const content = [
    ...(reasoning === undefined
      ? []
      : [{ reasoningContent: { reasoningText: { text: reasoning.text, signature: reasoning.sealed } } }]),
    ...(said === undefined ? [] : [{ text: said }]),
    ...calls.map(({ id, name, arguments: given }) => ({
      toolUse: { toolUseId: id, name, input: JSON.parse(given) as Fields },
    })),
  ];
  const called = calls.length > 0 ? "tool_use" : "end_turn";
  const stopReason = isCut === true ? "max_tokens" : refusal === undefined ? called : "content_filtered";
  return { content, stopReason, ...(error && { error }) };
}

export interface SeenCall {
  readonly path: string;
  readonly body: Fields;
}

/** Returns the newest request of a vendor, and how many there were. */
export function seenBy({ seen }: Vendors[VendorName]): { readonly count: number; readonly last: SeenCall | undefined } {
  const last = seen.at(-1);
  if (last === undefined) return { count: 0, last };
  return { count: seen.length, last: { path: "url" in last ? last.url : last.path, body: last.body } };
}

/** Returns what the checks of a format say of a request on one of Google's paths for formats of other vendors. */
export function findForeignFault({ path, body }: SeenCall): string | undefined {
  if (path.includes("/publishers/anthropic/")) {
    const { anthropic_version: _, ...rest } = body;
    return findMessagesFault({ ...rest, model: "in the path" });
  }
  return path.endsWith("/endpoints/openapi/chat/completions") ? findCompletionsFault(body) : undefined;
}
