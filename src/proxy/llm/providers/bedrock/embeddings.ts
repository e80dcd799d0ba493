/**
 * Embeddings on Bedrock: each vendor's models have a dialect of their own behind `/invoke`. Requests of the OpenAI form
 * may carry the fields of the dialect too.
 */
import type { HeaderList } from "../../../../lib/header-list.ts";
import { countOf, listOf, objectOf, type JsonObject } from "../../shared/json.ts";
import { invalidRequest, readBoolean, readCount, readText } from "../../shared/request-fields.ts";
import type { OperationForm } from "../../shared/operation-form.ts";
import { printEmbeddings, readInput } from "../shared/embedding-list.ts";

/** Returns the dialect of a model; undefined for one that is not known to embed. */
export function embeddingDialect(model: string): OperationForm | undefined {
  const name = model.toLowerCase();
  if (name.includes("titan-embed")) return titan;
  if (name.includes("cohere.embed")) return cohere;
  return name.includes("nova") && name.includes("embed") ? nova : undefined;
}

const titan: OperationForm = {
  printRequest(body) {
    const dimensions = readCount(body["dimensions"], "dimensions");
    const normalize = readBoolean(body["normalize"], "normalize");
    const types = body["embeddingTypes"] ?? body["embedding_types"];
    return {
      inputText: readSingle(body),
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(normalize === undefined ? {} : { normalize }),
      ...(types === undefined || types === null ? {} : { embeddingTypes: types }),
    };
  },
  readAnswer(answer, { request, model }) {
    const vector = answer["embedding"] ?? objectOf(answer["embeddingsByType"])?.["float"];
    return printEmbeddings([vector], { request, model, tokens: countOf(answer["inputTextTokenCount"]) ?? 0 });
  },
};

const cohere: OperationForm = {
  printRequest(body, model) {
    const input_type = readText(body["input_type"], "input_type") ?? "search_query";
    const truncate = readText(body["truncate"], "truncate");
    const dimension = readCount(body["output_dimension"] ?? body["dimensions"], "dimensions");
    return {
      texts: readInput(body),
      input_type,
      ...(truncate === undefined ? {} : { truncate }),
      // Older models have one dimension and refuse the field.
      ...(dimension === undefined || !model.includes("embed-v4") ? {} : { output_dimension: dimension }),
    };
  },
  readAnswer(answer, { request, model, headers }) {
    const { embeddings } = answer;
    const vectors = listOf(Array.isArray(embeddings) ? embeddings : objectOf(embeddings)?.["float"]);
    return printEmbeddings(vectors, { request, model, tokens: tokensIn(headers) });
  },
};

const nova: OperationForm = {
  printRequest(body) {
    const dimension = readCount(body["dimensions"], "dimensions");
    return {
      taskType: "SINGLE_EMBEDDING",
      singleEmbeddingParams: {
        embeddingPurpose: readText(body["embedding_purpose"], "embedding_purpose") ?? "GENERIC_INDEX",
        ...(dimension === undefined ? {} : { embeddingDimension: dimension }),
        text: {
          truncationMode: readText(body["truncation_mode"], "truncation_mode") ?? "END",
          value: readSingle(body),
        },
      },
    };
  },
  readAnswer(answer, { request, model, headers }) {
    const vectors = listOf(answer["embeddings"]).map((item) => objectOf(item)?.["embedding"]);
    return printEmbeddings(vectors, { request, model, tokens: tokensIn(headers) });
  },
};

/** @throws ProxyError llm_request_invalid for more texts than the model takes in one request */
function readSingle(body: JsonObject): string {
  const [text = "", ...others] = readInput(body);
  if (others.length > 0) throw invalidRequest("input must be one string for this model");
  return text;
}

function tokensIn(headers: HeaderList): number {
  return countOf(Number(headers.get("x-amzn-bedrock-input-token-count") ?? 0)) ?? 0;
}
