/**
 * THE table of formats that LLM clients speak, identified by the path of the request. The handler and all error replies
 * read it.
 */
import { RouteType } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { completions } from "../formats/completions/index.ts";
import { batchEmbedContents, embedContent } from "../formats/embeddings/gemini.ts";
import { embeddings } from "../formats/embeddings/index.ts";
import { messages } from "../formats/messages/index.ts";
import { rerank } from "../formats/rerank/index.ts";
import { responses } from "../formats/responses/index.ts";
import { geminiTokenCount } from "../formats/token-count/gemini.ts";
import { messagesTokenCount } from "../formats/token-count/messages.ts";
import type { ClientFormat, ErrorPrinter } from "./client-format.ts";
import { printCompletionsError } from "../formats/completions/errors.ts";
import { gemini } from "../formats/gemini/index.ts";
import { printGeminiError } from "../formats/gemini/errors.ts";
import { printMessagesError } from "../formats/messages/errors.ts";

const COMPLETIONS: ClientFormat = {
  name: "Completions",
  path: /\/chat\/completions\/*$/,
  printError: printCompletionsError,
  format: completions,
};

/** Describes a known format whose requests are not served yet; only its errors are printed in its form. */
function unserved(name: string, path: RegExp, printError: ErrorPrinter): ClientFormat {
  return { name, path, printError, format: undefined };
}

/** The first row with a matching path wins, so a longer path precedes a shorter one that is its end. */
export const CLIENT_FORMATS: readonly ClientFormat[] = [
  COMPLETIONS,
  {
    name: "MessagesTokenCount",
    // The second form is that of clients of Vertex AI.
    path: /\/messages\/count_tokens\/*$|\/models\/count-tokens:rawPredict$/,
    printError: printMessagesError,
    format: messagesTokenCount,
  },
  {
    name: "Messages",
    // The second form is that of clients of Vertex AI.
    path: /\/messages\/*$|\/models\/[^/:]+:(?:r|streamR)awPredict$/,
    printError: printMessagesError,
    format: messages,
  },
  unserved("Messages", /\/v1\/messages\/.*$/, printMessagesError),
  { name: "Responses", path: /\/responses\/*$/, printError: printCompletionsError, format: responses },
  { name: "Embeddings", path: /\/embeddings\/*$/, printError: printCompletionsError, format: embeddings },
  { name: "Rerank", path: /\/rerank\/*$/, printError: printCompletionsError, format: rerank },
  unserved("Realtime", /\/realtime\/*$|\/v1\/realtime\/.*$/, printCompletionsError),
  {
    name: "GeminiTokenCount",
    path: /(?<=\/(?:models|tunedModels)\/.+):countTokens$/,
    printError: printGeminiError,
    format: geminiTokenCount,
  },
  {
    name: "EmbedContent",
    path: /(?<=\/(?:models|tunedModels)\/.+):embedContent$/,
    printError: printGeminiError,
    format: embedContent,
  },
  {
    name: "BatchEmbedContents",
    path: /(?<=\/(?:models|tunedModels)\/.+):batchEmbedContents$/,
    printError: printGeminiError,
    format: batchEmbedContents,
  },
  {
    name: "Gemini",
    path: /(?<=\/(?:models|tunedModels)\/.+):(?:g|streamG)enerateContent$/,
    printError: printGeminiError,
    format: gemini,
  },
  unserved("Gemini", /(?<=\/(?:models|tunedModels)\/.+):[a-zA-Z]+$/, printGeminiError),
  unserved("GeminiModels", /\/v1beta\/models(?:\/[^:]+)?\/*$/, printGeminiError),
  unserved("Models", /\/models\/*$|\/v1\/models\/.*$/, printCompletionsError),
  unserved(
    "Passthrough",
    /\/v1\/(?:completions|responses|moderations|images|audio|videos|files|uploads|batches|fine_tuning|evals|assistants|threads|vector_stores|conversations|containers)(?:\/.*)?$/,
    printCompletionsError,
  ),
];

/** No path is of this format unless `routes` says so. */
const DETECT: ClientFormat = unserved("Detect", /(?!)/, printCompletionsError);

/**
 * @param path without the query
 * @param name of the format where the configuration decides, and not the path
 * @returns Completions when no row matches
 */
export function clientFormatOf(path: string, name?: string): ClientFormat {
  if (name === undefined) return CLIENT_FORMATS.find((row) => row.path.test(path)) ?? COMPLETIONS;
  // Of two rows of one name the first one is served.
  return name === DETECT.name ? DETECT : (CLIENT_FORMATS.find((row) => row.name === name) ?? COMPLETIONS);
}

const ROUTE_TYPES: Readonly<Record<RouteType, string>> = {
  [RouteType.UNSPECIFIED]: "Completions",
  [RouteType.COMPLETIONS]: "Completions",
  [RouteType.MESSAGES]: "Messages",
  [RouteType.RESPONSES]: "Responses",
  [RouteType.EMBEDDINGS]: "Embeddings",
  [RouteType.MESSAGES_TOKEN_COUNT]: "MessagesTokenCount",
  [RouteType.REALTIME]: "Realtime",
  [RouteType.MODELS]: "Models",
  [RouteType.PASSTHROUGH]: "Passthrough",
  [RouteType.DETECT]: "Detect",
};

/** Returns the name of the format that a value of `routes` stands for. */
export function formatOfRouteType(type: RouteType): string {
  // The enum of the wire is open: a controller may know a value that this version does not.
  return (ROUTE_TYPES as Readonly<Partial<Record<number, string>>>)[type] ?? COMPLETIONS.name;
}
