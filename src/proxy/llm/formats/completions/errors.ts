/** Prints errors in the form of the OpenAI API: for Completions, Responses and all paths without a format of their own. */
import type { VendorError } from "../../conversation/events.ts";
import type { JsonObject } from "../../shared/json.ts";

/** @param status HTTP status of the answer; undefined inside a stream */
export function printCompletionsError({ message, type, code }: VendorError, status = 500): JsonObject {
  return { error: { message, type: type ?? errorType(status), param: null, code: code ?? null } };
}

/** Prints an error as an event of a stream. */
export function printCompletionsStreamError(error: VendorError): string {
  return `data: ${JSON.stringify(printCompletionsError(error))}\n\n`;
}

const TYPES: ReadonlyMap<number, string> = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "invalid_request_error"],
  [415, "invalid_request_error"],
  [429, "rate_limit_error"],
]);

/** Returns the type that the APIs of OpenAI and Anthropic use for errors with this status. */
export function errorType(status: number): string {
  return TYPES.get(status) ?? "api_error";
}
