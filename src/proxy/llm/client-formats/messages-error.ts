/** Errors in the form of the Anthropic API: for Messages and MessagesTokenCount. */
import { errorType } from "./completions-error.ts";
import type { ErrorPrinter } from "./client-format.ts";

export const printMessagesError: ErrorPrinter = ({ status, message }) => ({
  type: "error",
  error: { type: status === 503 ? "overloaded_error" : errorType(status), message },
});
