/** The format of OpenAI chat completions: `choices`, `usage.prompt_tokens`, streams of `chat.completion.chunk`. */
import type { Facts } from "../../shared/usage.ts";
import type { ChatFormat } from "../chat-format.ts";
import { readError } from "../shared/read-error.ts";
import { printCompletionsError, printCompletionsStreamError } from "./errors.ts";
import { printAnswer } from "./print-answer.ts";
import { printRequest } from "./print-request.ts";
import { printStream } from "./print-stream.ts";
import { readAnswer } from "./read-answer.ts";
import { parseRequest, readRequest } from "./read-request.ts";
import { readStream } from "./read-stream.ts";
import { completionsTexts } from "./texts.ts";
import { learnFacts } from "./usage.ts";

export const completions: ChatFormat = {
  name: "Completions",
  vendor: "openai",
  namesModel: true,
  parse: parseRequest,
  usage(answer) {
    const facts: Facts = {};
    learnFacts(answer, facts);
    return facts;
  },
  stream: learnFacts,
  client: {
    readRequest,
    printAnswer,
    printStream,
    printError: printCompletionsError,
    printStreamError: printCompletionsStreamError,
    texts: completionsTexts,
  },
  provider: { printRequest, readAnswer, readStream, readError },
};
