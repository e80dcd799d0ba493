/**
 * The interface of a chat format: how its requests, answers, streams and errors are read and printed. `client` is the
 * side that applications speak, `provider` the side that providers speak; a format without one of them is not offered
 * there, and one without both, such as Embeddings, is only passed on. formats/index.ts has the table.
 *
 * A request between a client and a provider of one format uses only `parse`, `usage` and `stream`.
 */
import type { Answer } from "../conversation/answer.ts";
import type { Conversation, Vendor } from "../conversation/conversation.ts";
import type { AnswerEvent, DeltaEvent, VendorError } from "../conversation/events.ts";
import type { Losses } from "../conversation/losses.ts";
import type { JsonObject } from "../shared/json.ts";
import type { OperationForm } from "../shared/operation-form.ts";
import type { Facts } from "../shared/usage.ts";
import type { FormatTexts } from "./guarded-text.ts";

/** Chat formats, and what is no chat. */
export type FormatName =
  | "Completions"
  | "Messages"
  | "Responses"
  | "Gemini"
  | "Converse"
  | "Embeddings"
  | "EmbedContent"
  | "BatchEmbedContents"
  | "Rerank"
  | "MessagesTokenCount"
  | "GeminiTokenCount";

export interface LlmRequest {
  readonly body: JsonObject;
  /** undefined when the client named no model. */
  readonly model: string | undefined;
  readonly streaming: boolean;
  /** Whether the client wants a stream as the elements of one JSON list. */
  readonly wantsList?: boolean;
}

export interface ChatFormat {
  readonly name: FormatName;
  readonly vendor: Vendor;
  /** Whether bodies name the model; otherwise the path does. */
  readonly namesModel: boolean;
  /**
   * Checks what every use of a request relies on; the rest is left to the reader or to the provider.
   * @param target of the request, where a format names model and streaming that does not name them in its bodies
   * @throws ProxyError llm_request_invalid
   */
  parse(body: JsonObject, target?: string): LlmRequest;
  /** Returns model, usage and service tier of a complete answer. */
  usage(answer: JsonObject): Facts;
  /**
   * Merges one event of a stream into `facts`.
   * @returns true when the event has added something
   */
  stream(event: JsonObject, facts: Facts): boolean;
  readonly client?: ClientSide;
  readonly provider?: ProviderSide;
  /** Its requests in other formats that are no chat either. */
  readonly forms?: Readonly<Partial<Record<FormatName, FormatForm>>>;
  /** Returns the texts whose tokens are estimated where the provider reports none, in a format without a client side. */
  inputTexts?(body: JsonObject): readonly { readonly text: string }[];
  /**
   * Answers a request in place of a provider that cannot. A format with this member costs nothing: no budget is charged,
   * and no guard is asked.
   */
  answer?(body: JsonObject, model: string): Promise<JsonObject>;
}

export interface FormatForm extends OperationForm {
  /** Members that only some providers read; others are not sent them. */
  readonly hints: readonly string[];
}

export interface ClientSide {
  /** @throws ProxyError llm_request_invalid, with the path of the field */
  readRequest(body: JsonObject, context: RequestContext): Conversation;
  printAnswer(answer: Answer, context: AnswerContext): JsonObject;
  /** Returns a printer for one stream. */
  printStream(context: AnswerContext): StreamPrinter;
  printError(error: VendorError, status: number): JsonObject;
  /**
   * Returns the event that reports an error in a stream, with its framing.
   * @param eventsBefore events that the client has got, for formats that number them
   */
  printStreamError(error: VendorError, eventsBefore: number): string;
  /** The texts of its bodies, for guards and estimates. */
  readonly texts: FormatTexts;
}

export interface ProviderSide {
  /**
   * @returns the body, with the model where the format has one
   * @throws ProxyError llm_request_invalid for what the format cannot express and the meaning depends on
   */
  printRequest(conversation: Conversation, context: PrintContext): PrintedRequest;
  /** @throws ProxyError llm_response_invalid */
  readAnswer(body: JsonObject, context: ReadContext): Answer;
  /** Returns a reader for one stream. */
  readStream(context: ReadContext): StreamReader;
  /** Reads an error body of any shape. */
  readError(body: Buffer, status: number): VendorError;
}

export interface RequestContext {
  readonly model: string;
  readonly streaming: boolean;
  readonly losses: Losses;
}

export interface PrintContext {
  readonly losses: Losses;
  /** Tags of the model in the catalog (docs/model-catalog.md). */
  readonly tags: ReadonlySet<string>;
}

export interface PrintedRequest {
  readonly body: JsonObject;
  /** Names of tools that the target does not allow, by the name in their place. */
  readonly toolNames?: ReadonlyMap<string, string>;
}

/** What a reader of answers knows of the request. */
export interface ReadContext {
  readonly toolNames: ReadonlyMap<string, string> | undefined;
  /** Name of the model in the request, for formats whose answers carry none. */
  readonly model: string;
}

/** What a printer of answers knows of the request. */
export interface AnswerContext {
  /** The client's body. */
  readonly request: JsonObject;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface StreamReader {
  /**
   * Reads one event. An event that is read as a single `delta` changes nothing in the reader, and how it is read depends
   * on nothing but the parts that are open, so that stream/repetition.ts can skip equal ones.
   * @param type name of the event where the framing carries one, otherwise ""
   * @throws ProxyError llm_response_invalid
   */
  read(event: JsonObject, type: string): readonly AnswerEvent[];
  /** Returns what is still to be said at the end of the stream, such as parts to close and a stop that was held back. */
  end(): readonly AnswerEvent[];
}

export interface StreamPrinter {
  /** Returns the event as it goes to the client, with its framing; "" for an event that the format leaves out. */
  print(event: AnswerEvent): string;
  /** Returns the end of a complete stream. */
  end(): string;
  /** Whether a delta that was just printed would be printed again in the same way but for its text. */
  isRepeatable(event: AnswerEvent): boolean;
  /**
   * Prints a delta that is not repeatable like the last one, but with another text. `print` does it where this is absent.
   * @param literal the text as a JSON string without escapes
   */
  printRepeated?(event: DeltaEvent, literal: string): string;
}
