/**
 * Embeddings on Vertex AI: requests of the OpenAI form become `instances` for the `:predict` method, its predictions
 * become a list of embeddings.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import { countOf, listOf, objectOf, type Json, type JsonObject } from "../../json.ts";
import { invalidRequest, readBoolean, readCount, readText, requireText } from "../../request-fields.ts";
import type { OperationForm } from "../provider.ts";

const DEFAULT_TASK = "RETRIEVAL_QUERY";

export const predictions: OperationForm = { printRequest, readAnswer };

function printRequest(body: JsonObject): JsonObject {
  const task = readText(body["task_type"], "task_type") ?? DEFAULT_TASK;
  const title = readText(body["title"], "title");
  const encoding = readText(body["encoding_format"], "encoding_format") ?? "float";
  if (encoding !== "float" && encoding !== "base64") throw invalidRequest("encoding_format must be float or base64");
  const autoTruncate = readBoolean(body["auto_truncate"], "auto_truncate");
  const outputDimensionality = readCount(body["dimensions"], "dimensions");
  const parameters: JsonObject = {
    ...(autoTruncate === undefined ? {} : { autoTruncate }),
    ...(outputDimensionality === undefined ? {} : { outputDimensionality }),
  };
  return {
    instances: readTexts(body["input"]).map((content) => ({
      content,
      task_type: task,
      ...(title === undefined ? {} : { title }),
    })),
    ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
  };
}

/** Tokens cannot be sent, because each model has its own. */
function readTexts(input: Json | undefined): string[] {
  if (typeof input === "string") return [input];
  if (!Array.isArray(input) || input.length === 0) throw invalidRequest("input must be a string or a list of strings");
  return input.map((text, at) => requireText(text, `input[${at}]`));
}

function readAnswer(answer: JsonObject, { request, model }: { request: JsonObject; model: string }): JsonObject {
  if (!Array.isArray(answer["predictions"]))
    throw new ProxyError("llm_response_invalid", { detail: "an answer to :predict without a list of predictions" });
  const isPacked = request["encoding_format"] === "base64";
  let tokens = 0;
  const data = answer["predictions"].map((item, index) => {
    const embeddings = objectOf(objectOf(item)?.["embeddings"]);
    tokens += countOf(objectOf(embeddings?.["statistics"])?.["token_count"]) ?? 0;
    const values = readValues(embeddings?.["values"]);
    return { object: "embedding", index, embedding: isPacked ? packFloats(values) : values };
  });
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

function readValues(values: Json | undefined): number[] {
  const numbers = listOf(values).filter((value) => typeof value === "number");
  if (numbers.length > 0 && numbers.length === listOf(values).length) return numbers;
  throw new ProxyError("llm_response_invalid", { detail: "a prediction without a list of numbers" });
}

/** Packs numbers as 32-bit floats in little-endian order, in base64, as official clients ask for them. */
function packFloats(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, at) => bytes.writeFloatLE(value, at * 4));
  return bytes.toString("base64");
}
