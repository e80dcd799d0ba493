/**
 * Reads the request body of an LLM call: bounded in size, decoded, and parsed as a JSON object. The LLM handler uses
 * it.
 */
import type { Outgoing } from "../backends/transformation.ts";
import { codingOf, unpack } from "../exchange/content-coding.ts";
import { PROXY_ERRORS, ProxyError } from "../exchange/errors.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import { JsonError, objectOf, parseJson, type JsonObject } from "./shared/json.ts";
import { invalidRequest } from "./shared/request-fields.ts";

/** A request as it arrived, or after a transformation. */
export type RequestSource = Pick<RoutedExchange, "requestHeaders" | "requestLimitBytes" | "bufferRequestBody">;

/** Returns the request that a transformation has made of an exchange. */
export function changedSource(
  exchange: RoutedExchange,
  { headers, body }: Pick<Outgoing, "headers" | "body">,
): RequestSource {
  const { requestLimitBytes, requestBody } = exchange;
  return {
    requestHeaders: headers,
    requestLimitBytes,
    bufferRequestBody(limitBytes) {
      if (body === requestBody) return exchange.bufferRequestBody(limitBytes);
      return Promise.resolve(Buffer.isBuffer(body) && body.length <= limitBytes ? body : undefined);
    },
  };
}

/**
 * Reads the body. The size limit applies both before and after decoding.
 * @throws ProxyError body_too_large, encoding_unsupported, llm_request_invalid
 */
export async function readRequest(source: RequestSource): Promise<JsonObject> {
  const coding = codingOf(source.requestHeaders.getAll("content-encoding").join(","));
  if (coding === undefined) throw new ProxyError("encoding_unsupported");
  const { requestLimitBytes: limitBytes } = source;
  const packed = await source.bufferRequestBody(limitBytes);
  if (packed === undefined) throw tooLarge(limitBytes);
  let bytes: Buffer | undefined = packed;
  if (coding !== null) {
    try {
      bytes = await unpack(packed, coding, limitBytes);
    } catch (cause) {
      throw invalidRequest("the body is not in the coding that Content-Encoding names", cause);
    }
    if (bytes === undefined) throw tooLarge(limitBytes);
  }
  return readObject(bytes);
}

function readObject(bytes: Buffer): JsonObject {
  try {
    const body = objectOf(parseJson(bytes));
    if (body === undefined) throw invalidRequest("the body must be a JSON object");
    return body;
  } catch (error) {
    if (error instanceof JsonError) throw invalidRequest(`the body is ${error.message}`, error);
    throw error;
  }
}

/** The text names the limit: agents send bodies of megabytes, and an operator has to know which setting to raise. */
export function tooLarge(limitBytes: number): ProxyError {
  const { text } = PROXY_ERRORS.body_too_large;
  return new ProxyError("body_too_large", { text: `${text}: the limit is ${limitBytes} bytes` });
}
