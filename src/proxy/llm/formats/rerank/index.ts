/**
 * Rerank in the form that Cohere made known (`POST /rerank`): a query, documents, and their relevance. Like Embeddings it
 * is only passed on, or put into a provider's own form.
 */
import { readModelName } from "../../shared/model-name.ts";
import { requireList, requireText } from "../../shared/request-fields.ts";
import type { Facts } from "../../shared/usage.ts";
import type { ChatFormat } from "../chat-format.ts";
import { learnFacts } from "../completions/usage.ts";

export const rerank: ChatFormat = {
  name: "Rerank",
  vendor: "openai",
  namesModel: true,
  parse(body) {
    requireText(body["query"], "query");
    requireList(body["documents"], "documents");
    return { body, model: readModelName(body["model"]), streaming: false };
  },
  usage(answer) {
    const facts: Facts = {};
    learnFacts(answer, facts);
    return facts;
  },
  stream: () => false,
};
