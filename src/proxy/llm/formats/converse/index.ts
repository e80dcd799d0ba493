/** The format of Bedrock Converse, which one API puts in front of the models of many vendors. Providers alone speak it. */
import type { Facts } from "../../shared/usage.ts";
import type { ChatFormat } from "../chat-format.ts";
import { readError } from "../shared/read-error.ts";
import { printRequest } from "./print-request.ts";
import { readAnswer } from "./read-answer.ts";
import { readStream } from "./read-stream.ts";
import { learnFacts } from "./usage.ts";

export const converse: ChatFormat = {
  name: "Converse",
  vendor: "anthropic",
  namesModel: false,
  // No client speaks this format, so the bodies are our own.
  parse: (body) => ({ body, model: undefined, streaming: false }),
  usage(answer) {
    const facts: Facts = {};
    learnFacts(answer, facts);
    return facts;
  },
  stream: learnFacts,
  provider: { printRequest, readAnswer, readStream, readError },
};
