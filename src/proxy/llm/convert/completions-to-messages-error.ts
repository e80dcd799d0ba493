/** Converts errors of a messages provider for chat completions clients. The type of the error is kept. */
import { errorObject } from "../client-formats/completions-error.ts";
import { objectOf, parseObject, stringOf, type JsonObject } from "../json.ts";

export function convertError(body: Buffer, status: number): JsonObject {
  const error = objectOf(parseObject(body)?.["error"]);
  const text = body.toString("utf8").trim();
  return errorObject(
    stringOf(error?.["message"]) ?? (text === "" ? `the provider answered ${status}` : text),
    stringOf(error?.["type"]) ?? typeByStatus(status),
  );
}

function typeByStatus(status: number): string {
  if (status === 400) return "invalid_request_error";
  if (status === 401 || status === 403) return "authentication_error";
  if (status === 404) return "not_found_error";
  return status === 429 ? "rate_limit_error" : "api_error";
}
