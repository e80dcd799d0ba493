/** Prints errors in the form of the Anthropic API: for Messages and MessagesTokenCount. */
import type { VendorError } from "../../conversation/events.ts";
import type { JsonObject } from "../../shared/json.ts";
import { errorType } from "../completions/errors.ts";

/** @param status HTTP status of the answer; undefined inside a stream */
export function printMessagesError({ message, type }: VendorError, status = 500): JsonObject {
  return { type: "error", error: { type: type ?? (status === 503 ? "overloaded_error" : errorType(status)), message } };
}

/** Prints an error as an event of a stream. */
export function printMessagesStreamError(error: VendorError): string {
  return `event: error\ndata: ${JSON.stringify(printMessagesError(error))}\n\n`;
}
