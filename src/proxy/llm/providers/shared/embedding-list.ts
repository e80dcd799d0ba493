/** What providers with a form of their own for embeddings share: the texts of a request, and the list of an answer. */
import { ProxyError } from "../../../exchange/errors.ts";
import { listOf, type Json, type JsonObject } from "../../shared/json.ts";
import { invalidRequest, readText, requireText } from "../../shared/request-fields.ts";

/** Reads `input`. Tokens cannot be sent, because each model has its own. @throws ProxyError llm_request_invalid */
export function readInput(body: JsonObject): string[] {
  const encoding = readText(body["encoding_format"], "encoding_format") ?? "float";
  if (encoding !== "float" && encoding !== "base64") throw invalidRequest("encoding_format must be float or base64");
  const { input } = body;
  if (typeof input === "string") return [input];
  if (!Array.isArray(input) || input.length === 0) throw invalidRequest("input must be a string or a list of strings");
  return input.map((text, at) => requireText(text, `input[${at}]`));
}

interface EmbeddingList {
  /** The client's body. */
  readonly request: JsonObject;
  readonly model: string;
  readonly tokens: number;
}

/** Prints vectors in the form of the OpenAI API. @throws ProxyError llm_response_invalid for what is not a vector */
export function printEmbeddings(vectors: readonly (Json | undefined)[], list: EmbeddingList): JsonObject {
  if (vectors.length === 0) throw new ProxyError("llm_response_invalid", { detail: "an answer without embeddings" });
  const isPacked = list.request["encoding_format"] === "base64";
  const data = vectors.map((vector, index) => {
    const values = readVector(vector);
    return { object: "embedding", index, embedding: isPacked ? packFloats(values) : values };
  });
  const usage = { prompt_tokens: list.tokens, total_tokens: list.tokens };
  return { object: "list", data, model: list.model, usage };
}

function readVector(vector: Json | undefined): number[] {
  const given = listOf(vector);
  const numbers = given.filter((value) => typeof value === "number");
  if (numbers.length > 0 && numbers.length === given.length) return numbers;
  throw new ProxyError("llm_response_invalid", { detail: "an embedding without a list of numbers" });
}

/** Packs numbers as 32-bit floats in little-endian order, in base64, as official clients ask for them. */
function packFloats(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, at) => bytes.writeFloatLE(value, at * 4));
  return bytes.toString("base64");
}
