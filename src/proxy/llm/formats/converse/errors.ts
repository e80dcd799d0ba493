/** Reads the exceptions that a Converse stream can end with. Errors of whole answers have the form that all share. */
import type { VendorError } from "../../conversation/events.ts";
import { stringOf, type JsonObject } from "../../shared/json.ts";

/** Types in the words of OpenAI and Anthropic, by the exceptions in lower case. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ["throttlingexception", "rate_limit_error"],
  ["servicequotaexceededexception", "rate_limit_error"],
  ["modelnotreadyexception", "rate_limit_error"],
  ["validationexception", "invalid_request_error"],
  ["accessdeniedexception", "permission_error"],
  ["resourcenotfoundexception", "not_found_error"],
  ["serviceunavailableexception", "overloaded_error"],
]);

/** @param name of the exception, such as `throttlingException` */
export function readException(name: string, event: JsonObject): VendorError {
  const message = stringOf(event["message"]) ?? stringOf(event["Message"]) ?? stringOf(event["originalMessage"]) ?? "";
  return {
    message: message === "" ? `the provider ended the stream with ${name}` : message,
    type: TYPES.get(name.toLowerCase()) ?? "api_error",
  };
}
