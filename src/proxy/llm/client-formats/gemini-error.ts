/** Errors in the form of the Gemini API: a google.rpc.Status whose code is the HTTP status. */
import type { ErrorPrinter } from "./client-format.ts";

export const printGeminiError: ErrorPrinter = ({ message }, code) => ({
  error: { code, message, status: STATUSES.get(code) ?? (code < 500 ? "FAILED_PRECONDITION" : "INTERNAL") },
});

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
]);
