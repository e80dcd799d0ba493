/** Reads the request body of an LLM call: bounded, unpacked, and a JSON object or nothing. */
import { ProxyError } from "../errors.ts";
import type { Exchange } from "../pipeline/exchange.ts";
import { codingOf, unpack } from "./content-coding.ts";
import { JsonError, objectOf, parseJson, type JsonObject } from "./json.ts";

/**
 * The limit of bodies holds before and after unpacking.
 * @throws ProxyError body_too_large, encoding_unsupported, llm_request_invalid
 */
export async function readRequest(exchange: Exchange): Promise<JsonObject> {
  const coding = codingOf(exchange.requestHeaders.getAll("content-encoding").join(","));
  if (coding === undefined) throw new ProxyError("encoding_unsupported");
  const { requestLimitBytes: limitBytes } = exchange;
  const packed = await exchange.bufferRequestBody(limitBytes);
  if (packed === undefined) throw new ProxyError("body_too_large");
  let bytes: Buffer | undefined = packed;
  if (coding !== null) {
    try {
      bytes = await unpack(packed, coding, limitBytes);
    } catch (cause) {
      throw invalid("the body is not in the coding that Content-Encoding names", cause);
    }
    if (bytes === undefined) throw new ProxyError("body_too_large");
  }
  return readObject(bytes);
}

function readObject(bytes: Buffer): JsonObject {
  try {
    const body = objectOf(parseJson(bytes));
    if (body === undefined) throw invalid("the body must be a JSON object");
    return body;
  } catch (error) {
    if (error instanceof JsonError) throw invalid(`the body is ${error.message}`, error);
    throw error;
  }
}

function invalid(reason: string, cause?: unknown): ProxyError {
  return new ProxyError("llm_request_invalid", { text: `failed to process LLM request: ${reason}`, cause });
}
