/** The format of OpenAI responses: `input` items, `output` items, streams of named events. */
import type { Facts } from "../../shared/usage.ts";
import type { ChatFormat } from "../chat-format.ts";
import { printCompletionsError } from "../completions/errors.ts";
import { readError } from "../shared/read-error.ts";
import { printAnswer } from "./print-answer.ts";
import { printRequest } from "./print-request.ts";
import { printStream, printStreamError } from "./print-stream.ts";
import { readAnswer } from "./read-answer.ts";
import { parseRequest, readRequest } from "./read-request.ts";
import { readStream } from "./read-stream.ts";
import { responsesTexts } from "./texts.ts";
import { learnEvent, learnResponse } from "./usage.ts";

export const responses: ChatFormat = {
  name: "Responses",
  vendor: "openai",
  namesModel: true,
  parse: parseRequest,
  usage(answer) {
    const facts: Facts = {};
    learnResponse(answer, facts);
    return facts;
  },
  stream: learnEvent,
  client: {
    readRequest,
    printAnswer,
    printStream,
    printError: printCompletionsError,
    printStreamError,
    texts: responsesTexts,
  },
  provider: { printRequest, readAnswer, readStream, readError },
};
