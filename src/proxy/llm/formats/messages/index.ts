/**
 * The format of Anthropic messages: content blocks, usage that excludes cached tokens, streams that open with
 * `message_start`.
 */
import type { Facts } from "../../shared/usage.ts";
import type { ChatFormat } from "../chat-format.ts";
import { readError } from "../shared/read-error.ts";
import { printMessagesError, printMessagesStreamError } from "./errors.ts";
import { printAnswer } from "./print-answer.ts";
import { printRequest } from "./print-request.ts";
import { printStream } from "./print-stream.ts";
import { readAnswer } from "./read-answer.ts";
import { parseRequest, readRequest } from "./read-request.ts";
import { readStream } from "./read-stream.ts";
import { messagesTexts } from "./texts.ts";
import { learnFacts, learnFromEvent } from "./usage.ts";

export const messages: ChatFormat = {
  name: "Messages",
  vendor: "anthropic",
  namesModel: true,
  parse: parseRequest,
  usage(answer) {
    const facts: Facts = {};
    learnFacts(answer, facts);
    return facts;
  },
  stream: learnFromEvent,
  client: {
    readRequest,
    printAnswer,
    printStream,
    printError: printMessagesError,
    printStreamError: printMessagesStreamError,
    texts: messagesTexts,
  },
  provider: { printRequest, readAnswer, readStream, readError },
};
