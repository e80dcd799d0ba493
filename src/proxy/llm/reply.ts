/**
 * Turns the response of a provider into the client's reply: decodes its content coding, reads model and usage into the
 * ledger, and translates it when client and provider speak different formats. The LLM handler uses it.
 */
import { ProxyError } from "../exchange/errors.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";
import { HeaderList } from "../../lib/header-list.ts";
import type { BodyStream } from "../exchange/body.ts";
import { collect } from "../exchange/collect.ts";
import { codingOf, forgetBody, unpackStream } from "../exchange/content-coding.ts";
import type { Reply } from "../exchange/exchange.ts";
import type { ChatFormat, ClientSide, ProviderSide } from "./formats/chat-format.ts";
import type { OperationForm } from "./shared/operation-form.ts";
import type { ErrorPrinter } from "./client-formats/client-format.ts";
import type { Vendor } from "./conversation/conversation.ts";
import { printCompletionsError } from "./formats/completions/errors.ts";
import { printGeminiError } from "./formats/gemini/errors.ts";
import { printMessagesError } from "./formats/messages/errors.ts";
import { readError as readAnyError } from "./formats/shared/read-error.ts";
import type { RequestGuards } from "./guards/run.ts";
import { parseObject, type JsonObject } from "./shared/json.ts";
import { writeJsonArray } from "./stream/json-array.ts";
import { scanStream } from "./stream/scanned-stream.ts";
import { translateStream } from "./stream/translated-stream.ts";
import { awaitFirstBytes } from "./stream/first-bytes.ts";
import { framingOf, serverSentEvents, type Framing } from "./stream/framing.ts";
import type { Ledger } from "./call/ledger.ts";

export interface ReplyContext {
  readonly client: ChatFormat;
  readonly provider: ChatFormat;
  /** The client's body. */
  readonly request: JsonObject;
  /** Name of the model in the request. */
  readonly model: string;
  readonly toolNames: ReadonlyMap<string, string> | undefined;
  /** The form of the answer where the provider has one of its own for an operation. */
  readonly ownForm: OperationForm | undefined;
  /** Whether events that only report usage are kept from the client, who did not ask for them. */
  readonly hidesUsage: boolean;
  /** Whether the client gets a stream as the elements of one JSON list. */
  readonly writesList: boolean;
  readonly ledger: Ledger;
  /** Guards of the request; undefined when none are configured. */
  readonly guards: RequestGuards | undefined;
  readonly streaming: boolean;
  readonly limitBytes: number;
}

/** Both sides of a translation. */
interface Sides {
  readonly client: ClientSide;
  readonly provider: ProviderSide;
}

/** Printers of errors for operations that are no chat; clients of most of them read the form of OpenAI. */
const ERROR_PRINTERS: Readonly<Record<Vendor, ErrorPrinter>> = {
  openai: printCompletionsError,
  anthropic: printMessagesError,
  google: printGeminiError,
};

/** Media type of streams that are translated from another framing. */
const SSE = "text/event-stream";

/** @throws ProxyError llm_response_invalid, response_too_large, upstream_broken */
export async function readReply(response: UpstreamResponse, context: ReplyContext): Promise<Reply> {
  const headers = response.headers.clone();
  const reply = (body: Reply["body"]): Reply => ({ status: response.status, headers, body, upstream: true });
  const { ledger } = context;
  const sides = sidesOf(context);
  const isTranslated = sides !== undefined || context.ownForm !== undefined;
  const coding = codingOf(headers.getAll("content-encoding").join(","));
  const isChecked = context.guards?.checksAnswers === true && response.status < 400;
  if (response.body === null || (coding === undefined && !isTranslated && !isChecked)) {
    ledger.settle("complete");
    return reply(response.body);
  }
  if (coding === undefined) {
    response.body.destroy();
    throw new ProxyError("llm_response_invalid", { detail: "the answer has an unknown content coding" });
  }
  const body = coding === null ? response.body : unpackStream(response.body, coding, "llm_response_invalid");
  if (coding !== null || isTranslated) forgetBody(headers);
  if (response.status >= 400) return reply(await readError(body, headers, response.status, context));
  const type = headers.get("content-type") ?? "";
  const framing = framingOf(type);
  if (framing !== undefined) {
    if (context.hidesUsage || isChecked) forgetBody(headers);
    if (sides !== undefined && framing !== serverSentEvents) headers.set("content-type", SSE);
    if (context.writesList) {
      headers.set("content-type", "application/json");
      forgetBody(headers);
    }
    const written = (stream: BodyStream): BodyStream =>
      context.writesList ? writeJsonArray(stream, context.limitBytes) : stream;
    const stream = readStream(body, framing, context);
    if (!isChecked) return reply(await awaitFirstBytes(written(stream)));
    return reply(written(checkStream(await awaitFirstBytes(stream), framing, headers, context)));
  }
  // A chat that asked for no stream has an answer of JSON, whatever its provider calls it.
  const isAnswer = type.toLowerCase().includes("json") || (context.client.client !== undefined && !context.streaming);
  if (!isTranslated && !isAnswer && !isChecked) {
    ledger.settle("complete");
    return reply(body);
  }
  const whole = await readWhole(body, headers, context);
  return Buffer.isBuffer(whole) ? reply(whole) : whole;
}

/** @returns undefined when nothing has to be translated */
function sidesOf({ client, provider, ownForm }: ReplyContext): Sides | undefined {
  if (client === provider || ownForm !== undefined) return undefined;
  if (client.client === undefined || provider.provider === undefined)
    throw new ProxyError("llm_conversion_unsupported");
  return { client: client.client, provider: provider.provider };
}

function readStream(body: BodyStream, framing: Framing, context: ReplyContext): BodyStream {
  const sides = sidesOf(context);
  const { provider, ledger, limitBytes: maxEventBytes, hidesUsage, request, toolNames, model } = context;
  if (sides === undefined) return scanStream(body, { format: provider, ledger, maxEventBytes, framing, hidesUsage });
  // The reader lives as long as the stream, so it gets nothing that holds the request.
  const reader = sides.provider.readStream({ toolNames, model });
  const printer = sides.client.printStream({ request, createdAt: nowSeconds() });
  return translateStream(body, { ledger, maxEventBytes, framing }, { reader, printer });
}

/** @throws ProxyError llm_response_invalid for a stream that would get around the guards of answers */
function checkStream(stream: BodyStream, framing: Framing, headers: HeaderList, context: ReplyContext): BodyStream {
  const { guards, streaming, limitBytes } = context;
  // Only streams of the client's own framing can be read; a translated stream always has it.
  if (guards !== undefined && streaming && (framing === serverSentEvents || sidesOf(context) !== undefined))
    return guards.checkStream(stream, headers, limitBytes);
  stream.destroy();
  throw new ProxyError("llm_response_invalid", { detail: "a stream that the request did not ask for" });
}

async function readError(
  body: BodyStream,
  headers: HeaderList,
  status: number,
  context: ReplyContext,
): Promise<Reply["body"]> {
  const sides = sidesOf(context);
  context.ledger.settle("failed");
  if (sides === undefined && context.ownForm === undefined) return body;
  const bytes = await collect(body, context.limitBytes);
  if (bytes === undefined) throw new ProxyError("response_too_large");
  const printError = ERROR_PRINTERS[context.client.vendor];
  if (sides === undefined) return printed(printError(readAnyError(bytes, status), status), headers);
  return printed(sides.client.printError(sides.provider.readError(bytes, status), status), headers);
}

/** @returns the bytes, or the reply of a guard that rejects the answer */
async function readWhole(body: BodyStream, headers: HeaderList, context: ReplyContext): Promise<Buffer | Reply> {
  const { client, provider, ledger, limitBytes, request, guards, ownForm } = context;
  const sides = sidesOf(context);
  const bytes = await collect(body, limitBytes);
  if (bytes === undefined) throw new ProxyError("response_too_large");
  const answer = parseObject(bytes);
  if (answer === undefined) {
    // A failed attempt: an estimate of it would be charged once more for each provider that is asked.
    ledger.settle("failed");
    throw new ProxyError("llm_response_invalid", { detail: "the answer is not a JSON object" });
  }
  if (ownForm !== undefined) {
    const own = ownForm.readAnswer(answer, { ...context, headers });
    ledger.record(client.usage(own));
    ledger.settle("complete");
    return printed(own, headers);
  }
  ledger.record(provider.usage(answer));
  const read = sides?.provider.readAnswer(answer, context);
  const own = read && sides?.client.printAnswer(read, { request, createdAt: nowSeconds() });
  if (ledger.countsText) ledger.addText(textBytes(client.client?.texts.answerTexts(own ?? answer)));
  ledger.settle("complete");
  const checked = guards === undefined ? undefined : await guards.checkAnswer(own ?? answer, headers);
  if (checked?.reply !== undefined) return checked.reply;
  if (own === undefined && checked?.isMasked !== true) return bytes;
  forgetBody(headers);
  return printed(own ?? answer, headers);
}

/** Returns the length of texts in UTF-8. */
export function textBytes(texts: readonly { readonly text: string }[] = []): number {
  return texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}

function printed(answer: JsonObject, headers: HeaderList): Buffer {
  headers.set("content-type", "application/json");
  return Buffer.from(JSON.stringify(answer));
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
