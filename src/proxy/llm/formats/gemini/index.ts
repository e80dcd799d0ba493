/** The format of the Gemini API: `contents`, `candidates`, `usageMetadata`; model and streaming are in the path. */
import type { Facts } from "../../shared/usage.ts";
import type { ChatFormat } from "../chat-format.ts";
import { readError } from "../shared/read-error.ts";
import { printGeminiError, printGeminiStreamError } from "./errors.ts";
import { printAnswer } from "./print-answer.ts";
import { printRequest } from "./print-request.ts";
import { printStream } from "./print-stream.ts";
import { readAnswer } from "./read-answer.ts";
import { parseRequest, readRequest } from "./read-request.ts";
import { readStream } from "./read-stream.ts";
import { geminiTexts } from "./texts.ts";
import { learnFacts } from "./usage.ts";

export const gemini: ChatFormat = {
  name: "Gemini",
  vendor: "google",
  namesModel: false,
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
    printError: printGeminiError,
    printStreamError: printGeminiStreamError,
    texts: geminiTexts,
  },
  provider: { printRequest, readAnswer, readStream, readError },
};
