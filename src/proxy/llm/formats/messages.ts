/**
 * The format of Anthropic messages: content blocks, usage that excludes cached tokens, streams that open with
 * `message_start`.
 */
import { countOf, objectOf, stringOf, type JsonObject } from "../json.ts";
import { readBoolean, readText, requireList } from "../request-fields.ts";
import type { Facts } from "../usage.ts";
import type { Format } from "./format.ts";

export const messages: Format = {
  name: "Messages",

  parse(body) {
    requireList(body["messages"], "messages");
    return { body, model: readText(body["model"], "model"), streaming: readBoolean(body["stream"], "stream") === true };
  },

  print: (body) => Buffer.from(JSON.stringify(body)),

  usage(answer) {
    const facts: Facts = {};
    learn(answer, facts);
    return facts;
  },

  stream(event, facts) {
    switch (event["type"]) {
      case "message_start": {
        const message = objectOf(event["message"]);
        return message !== undefined && learn(message, facts);
      }
      case "message_delta":
        return learn(event, facts);
      default:
        return false;
    }
  },
};

/** Counts in a stream are running totals: a later count replaces an earlier one, an absent one keeps it. */
function learn(answer: JsonObject, facts: Facts): boolean {
  const model = stringOf(answer["model"]);
  if (model !== undefined) facts.model = model;
  const reported = objectOf(answer["usage"]);
  if (reported === undefined) return model !== undefined;
  const before = facts.usage;
  const fresh = countOf(reported["input_tokens"]) ?? before?.providerInputTokens ?? 0;
  const read = countOf(reported["cache_read_input_tokens"]) ?? before?.cachedInputTokens;
  const written = countOf(reported["cache_creation_input_tokens"]) ?? before?.cacheCreationInputTokens;
  facts.usage = {
    inputTokens: fresh + (read ?? 0) + (written ?? 0),
    outputTokens: countOf(reported["output_tokens"]) ?? before?.outputTokens ?? 0,
    providerInputTokens: fresh,
    ...(read === undefined ? {} : { cachedInputTokens: read }),
    ...(written === undefined ? {} : { cacheCreationInputTokens: written }),
  };
  return true;
}
