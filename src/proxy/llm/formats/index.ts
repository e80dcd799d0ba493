/** The table of chat formats, and the choice of a provider's format for the format of a client. */
import type { ChatFormat, FormatName } from "./chat-format.ts";
import { completions } from "./completions/index.ts";
import { converse } from "./converse/index.ts";
import { batchEmbedContents, embedContent } from "./embeddings/gemini.ts";
import { embeddings } from "./embeddings/index.ts";
import { gemini } from "./gemini/index.ts";
import { messages } from "./messages/index.ts";
import { rerank } from "./rerank/index.ts";
import { responses } from "./responses/index.ts";
import { geminiTokenCount } from "./token-count/gemini.ts";
import { messagesTokenCount } from "./token-count/messages.ts";

export const CHAT_FORMATS: Readonly<Record<FormatName, ChatFormat>> = {
  Completions: completions,
  Messages: messages,
  Gemini: gemini,
  Converse: converse,
  Responses: responses,
  Embeddings: embeddings,
  EmbedContent: embedContent,
  BatchEmbedContents: batchEmbedContents,
  Rerank: rerank,
  MessagesTokenCount: messagesTokenCount,
  GeminiTokenCount: geminiTokenCount,
};

/**
 * Formats of providers by the format of the client, the preferred one first. Its own format needs no translation; where
 * another one precedes it, the vendor's endpoint for the client's format loses features.
 */
const PREFERENCES: Readonly<Record<FormatName, readonly FormatName[]>> = {
  Completions: ["Gemini", "Completions", "Messages", "Converse"],
  Messages: ["Messages", "Completions", "Responses", "Converse"],
  Responses: ["Responses", "Completions", "Messages", "Converse"],
  Gemini: ["Gemini", "Completions", "Messages", "Converse"],
  // No client speaks it.
  Converse: [],
  Embeddings: ["Embeddings"],
  EmbedContent: ["EmbedContent", "Embeddings"],
  BatchEmbedContents: ["BatchEmbedContents", "Embeddings"],
  Rerank: ["Rerank"],
  MessagesTokenCount: ["MessagesTokenCount"],
  GeminiTokenCount: ["GeminiTokenCount"],
};

/**
 * @param accepted formats that the provider accepts for the model
 * @returns undefined when no request of this client can be expressed for the provider
 */
export function providerFormat(client: FormatName, accepted: readonly FormatName[]): ChatFormat | undefined {
  const name = PREFERENCES[client].find((each) => accepted.includes(each));
  return name && CHAT_FORMATS[name];
}
