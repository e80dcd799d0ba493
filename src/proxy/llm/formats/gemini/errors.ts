/** Prints errors in the form of the Gemini API: a google.rpc.Status whose code is the HTTP status. */
import type { VendorError } from "../../conversation/events.ts";
import type { JsonObject } from "../../shared/json.ts";

/** Names of google.rpc.Code by HTTP status. */
const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [408, "DEADLINE_EXCEEDED"],
  [413, "INVALID_ARGUMENT"],
  [415, "INVALID_ARGUMENT"],
  [429, "RESOURCE_EXHAUSTED"],
  [501, "UNIMPLEMENTED"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
  [529, "UNAVAILABLE"],
]);

/** HTTP status by type, for errors inside a stream, where there is none. */
const CODES: ReadonlyMap<string | undefined, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["overloaded_error", 503],
]);

/** @param status HTTP status of the answer; undefined inside a stream */
export function printGeminiError({ message, type }: VendorError, status?: number): JsonObject {
  const code = status ?? CODES.get(type) ?? 500;
  return { error: { code, message, status: STATUSES.get(code) ?? (code < 500 ? "FAILED_PRECONDITION" : "INTERNAL") } };
}

/** Prints an error as an event of a stream. */
export function printGeminiStreamError(error: VendorError): string {
  return `data: ${JSON.stringify(printGeminiError(error))}\n\n`;
}
