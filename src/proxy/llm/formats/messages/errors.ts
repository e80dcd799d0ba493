/** Prints errors in the form of the Anthropic API: for Messages and MessagesTokenCount. */
import type { VendorError } from "../../conversation/events.ts";
import type { JsonObject } from "../../shared/json.ts";
import { errorType } from "../completions/errors.ts";

/** Code on which the official clients go on without a conversation that the server keeps. */
export const THREAD_UNSUPPORTED = "thread_unsupported_request";

/** @param status HTTP status of the answer; undefined inside a stream */
export function printMessagesError({ message, type, code }: VendorError, status = 500): JsonObject {
  const details = code === THREAD_UNSUPPORTED ? { details: { error_code: code, unsupported: ["thread"] } } : {};
  const typed = type ?? (status === 503 ? "overloaded_error" : errorType(status));
  return { type: "error", error: { type: typed, message, ...details } };
}

/** Prints an error as an event of a stream. */
export function printMessagesStreamError(error: VendorError): string {
  return `event: error\ndata: ${JSON.stringify(printMessagesError(error))}\n\n`;
}
