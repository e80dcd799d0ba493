/** Errors as clients of the Anthropic API read them: Messages and the counting of their tokens. */
import { errorType } from "./completions-error.ts";
import type { ErrorPrinter } from "./client-format.ts";

export const printMessagesError: ErrorPrinter = ({ status, message }) => ({
  type: "error",
  error: { type: status === 503 ? "overloaded_error" : errorType(status), message },
});
