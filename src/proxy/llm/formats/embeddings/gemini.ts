/**
 * Embeddings of the Gemini API: `models/<model>:embedContent` for one content, and `:batchEmbedContents` for a list of
 * requests. Providers without them get the form of OpenAI, of which they may have one of their own.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import { pathOf } from "../../../../lib/network/request-target.ts";
import { isDeepStrictEqual } from "node:util";
import { readPathModel, readModelName } from "../../shared/model-name.ts";
import { readNativePath } from "../../shared/native-path.ts";
import { countOf, listOf, objectOf, type Json, type JsonObject } from "../../shared/json.ts";
import {
  invalidRequest,
  readCount,
  readObjects,
  readText,
  requireList,
  requireObject,
} from "../../shared/request-fields.ts";
import type { ChatFormat, FormatForm, FormatName } from "../chat-format.ts";
import { memberOf } from "../gemini/member.ts";

/** One content to embed, with its settings. */
interface Embedding {
  readonly text: string;
  /** In the names of the providers that know them; the same for all embeddings of a request. */
  readonly settings: JsonObject;
}

/** Purposes of Google by the names that Cohere gives them. */
const INPUT_TYPES: Readonly<Record<string, string>> = {
  RETRIEVAL_QUERY: "search_query",
  RETRIEVAL_DOCUMENT: "search_document",
  CLASSIFICATION: "classification",
  CLUSTERING: "clustering",
};

/** One request of a body, and its path there with a dot at the end. */
interface Part {
  readonly request: JsonObject;
  readonly path: string;
}

/** Returns the requests of a body. @throws ProxyError llm_request_invalid */
type Split = (body: JsonObject) => Part[];
type Print = (embeddings: readonly JsonObject[]) => JsonObject;

export const embedContent: ChatFormat = formatOf(
  "EmbedContent",
  (body) => [{ request: body, path: "" }],
  ([embedding]) => ({ embedding: embedding ?? null }),
);

export const batchEmbedContents: ChatFormat = formatOf(
  "BatchEmbedContents",
  (body) =>
    requireList(body["requests"], "requests").map((request, at) => ({
      request: requireObject(request, `requests[${at}]`),
      path: `requests[${at}].`,
    })),
  (embeddings) => ({ embeddings: [...embeddings] }),
);

function formatOf(name: FormatName, split: Split, print: Print): ChatFormat {
  return {
    name,
    vendor: "google",
    namesModel: false,
    parse(body, target = "") {
      // Google embeds more than texts, so that a part is read only where it has to be converted.
      for (const { request, path } of split(body)) contentOf(request, path);
      const native = readNativePath(pathOf(target));
      const model = native === undefined ? readModelName(body["model"]) : readPathModel(native.model);
      return { body, model, streaming: false };
    },
    inputTexts: (body) =>
      split(body).flatMap(({ request, path }) =>
        contentOf(request, path).flatMap(({ text }) => (typeof text === "string" ? [{ text }] : [])),
      ),
    usage(answer) {
      const tokens = countOf(objectOf(answer["usageMetadata"])?.["promptTokenCount"]);
      return tokens === undefined ? {} : { usage: { inputTokens: tokens, outputTokens: 0 } };
    },
    stream: () => false,
    forms: { Embeddings: inOpenAiForm(split, print) },
  };
}

function inOpenAiForm(split: Split, print: Print): FormatForm {
  return {
    hints: ["task_type", "title", "input_type"],
    printRequest(body, model) {
      const embeddings = split(body).map(readEmbedding);
      if (embeddings.length === 0) throw invalidRequest("requests must not be empty");
      const [{ settings = {} } = {}] = embeddings;
      const other = embeddings.findIndex((each) => !isDeepStrictEqual(each.settings, settings));
      if (other !== -1) throw invalidRequest(`requests[${other}] must have the settings of the first request`);
      return { model, input: embeddings.map(({ text }) => text), ...settings };
    },
    readAnswer(answer, { request }) {
      const vectors = new Map(
        listOf(answer["data"]).map((item, at) => [
          countOf(objectOf(item)?.["index"]) ?? at,
          objectOf(item)?.["embedding"],
        ]),
      );
      const wanted = split(request).length;
      const embeddings = Array.from({ length: wanted }, (_none, at) => ({ values: requireVector(vectors.get(at)) }));
      const tokens = countOf(objectOf(answer["usage"])?.["prompt_tokens"]);
      return { ...print(embeddings), ...(tokens === undefined ? {} : { usageMetadata: { promptTokenCount: tokens } }) };
    },
  };
}

/** Returns the parts of a content. @throws ProxyError llm_request_invalid */
function contentOf(request: JsonObject, path: string): JsonObject[] {
  return readObjects(requireObject(request["content"], `${path}content`)["parts"], `${path}content.parts`);
}

/** @throws ProxyError llm_request_invalid, also for what is no text */
function readEmbedding({ request, path }: Part): Embedding {
  const parts = contentOf(request, path);
  const texts = parts.map((part, at) => {
    const text = readText(part["text"], `${path}content.parts[${at}].text`);
    if (text === undefined) throw invalidRequest(`${path}content.parts[${at}].text is needed`);
    return text;
  });
  if (texts.length === 0) throw invalidRequest(`${path}content.parts must not be empty`);
  const setting = (name: string): string | undefined => readText(memberOf(request, name), `${path}${name}`);
  const task = setting("taskType");
  const settings = {
    dimensions: readCount(memberOf(request, "outputDimensionality"), `${path}outputDimensionality`),
    task_type: task,
    input_type: task === undefined ? undefined : INPUT_TYPES[task],
    title: setting("title"),
  };
  return {
    text: texts.join("\n"),
    settings: Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)),
  };
}

/** @throws ProxyError llm_response_invalid */
function requireVector(value: Json | undefined): Json[] {
  const values = listOf(value);
  if (values.length > 0 && values.every((each) => typeof each === "number")) return [...values];
  throw new ProxyError("llm_response_invalid", { detail: "an embedding is missing, or is not a list of numbers" });
}
