/**
 * Embeddings on Vertex AI: requests of the OpenAI form become `instances` for the `:predict` method, its predictions
 * become a list of embeddings.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import { countOf, objectOf, type JsonObject } from "../../shared/json.ts";
import { readBoolean, readCount, readText } from "../../shared/request-fields.ts";
import type { OperationForm } from "../../shared/operation-form.ts";
import { printEmbeddings, readInput } from "../shared/embedding-list.ts";

const DEFAULT_TASK = "RETRIEVAL_QUERY";

export const predictions: OperationForm = { printRequest, readAnswer };

function printRequest(body: JsonObject): JsonObject {
  const task = readText(body["task_type"], "task_type") ?? DEFAULT_TASK;
  const title = readText(body["title"], "title");
  const autoTruncate = readBoolean(body["auto_truncate"], "auto_truncate");
  const outputDimensionality = readCount(body["dimensions"], "dimensions");
  const parameters: JsonObject = {
    ...(autoTruncate === undefined ? {} : { autoTruncate }),
    ...(outputDimensionality === undefined ? {} : { outputDimensionality }),
  };
  return {
    instances: readInput(body).map((content) => ({
      content,
      task_type: task,
      ...(title === undefined ? {} : { title }),
    })),
    ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
  };
}

function readAnswer(answer: JsonObject, { request, model }: { request: JsonObject; model: string }): JsonObject {
  if (!Array.isArray(answer["predictions"]))
    throw new ProxyError("llm_response_invalid", { detail: "an answer to :predict without a list of predictions" });
  let tokens = 0;
  const vectors = answer["predictions"].map((item) => {
    const embeddings = objectOf(objectOf(item)?.["embeddings"]);
    tokens += countOf(objectOf(embeddings?.["statistics"])?.["token_count"]) ?? 0;
    return embeddings?.["values"];
  });
  return printEmbeddings(vectors, { request, model, tokens });
}
