/**
 * Errors in the form of the OpenAI API: for Completions, Responses, Embeddings and all paths without a format of their
 * own.
 */
import type { JsonObject } from "../json.ts";
import type { ErrorPrinter } from "./client-format.ts";

export const printCompletionsError: ErrorPrinter = ({ status, message, code }) =>
  errorObject(message, errorType(status), code);

export function errorObject(message: string, type: string, code: string | null = null): JsonObject {
  return { error: { message, type, param: null, code } };
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
