/** Errors as clients of the OpenAI API read them: Completions, Responses, Embeddings, and whatever has no format of its own. */
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

/** The type that the APIs of OpenAI and Anthropic give an error of this status. */
export function errorType(status: number): string {
  return TYPES.get(status) ?? "api_error";
}
