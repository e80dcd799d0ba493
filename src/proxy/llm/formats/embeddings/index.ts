/**
 * Embeddings in the form of the OpenAI API (`POST /embeddings`). They are no conversation, so requests and answers are
 * only passed on: the format has neither of the two sides.
 */
import { invalidRequest } from "../../shared/request-fields.ts";
import { readModelName } from "../../shared/model-name.ts";
import type { ChatFormat } from "../chat-format.ts";
import { learnFacts } from "../completions/usage.ts";
import type { Facts } from "../../shared/usage.ts";

export const embeddings: ChatFormat = {
  name: "Embeddings",
  vendor: "openai",
  namesModel: true,
  parse(body) {
    const { input } = body;
    if (typeof input !== "string" && !Array.isArray(input)) throw invalidRequest("input must be a string or a list");
    return { body, model: readModelName(body["model"]), streaming: false };
  },
  usage(answer) {
    const facts: Facts = {};
    learnFacts(answer, facts);
    return facts;
  },
  stream: () => false,
};
