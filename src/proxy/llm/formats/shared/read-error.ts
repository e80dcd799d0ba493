/**
 * Reads an error of a provider, whatever its form: an object below `error` as OpenAI, Anthropic and Google write it
 * (Google also as a list of one), `{"message"}` as Amazon does, or any text. All formats share it, because proxies and
 * load balancers in front of a provider answer in forms of their own.
 */
import type { VendorError } from "../../conversation/events.ts";
import { JsonError, listOf, objectOf, parseJson, stringOf, type Json, type JsonObject } from "../../shared/json.ts";

/** Longest message that is passed on; a page of HTML tells nothing more. */
const MAX_MESSAGE = 4096;

/** Types by the names of google.rpc.Code. */
const GOOGLE_TYPES: ReadonlyMap<string, string> = new Map([
  ["INVALID_ARGUMENT", "invalid_request_error"],
  ["FAILED_PRECONDITION", "invalid_request_error"],
  ["NOT_FOUND", "not_found_error"],
  ["PERMISSION_DENIED", "authentication_error"],
  ["UNAUTHENTICATED", "authentication_error"],
  ["RESOURCE_EXHAUSTED", "rate_limit_error"],
]);

export function readError(body: Buffer, status: number): VendorError {
  const text = body.toString("utf8").trim();
  const given = valueOf(body);
  const error = readErrorObject(objectOf(listOf(given)[0]) ?? objectOf(given) ?? {});
  if (error.message !== "") return { ...error, type: error.type ?? typeByStatus(status) };
  return {
    message: text === "" ? `the provider answered ${status}` : text.slice(0, MAX_MESSAGE),
    type: error.type ?? typeByStatus(status),
  };
}

/** Reads the error of an event; the message is "" when there is none. */
export function readErrorObject(body: JsonObject): VendorError {
  const error = objectOf(body["error"]) ?? body;
  const message = stringOf(error["message"]) ?? stringOf(body["error"]) ?? stringOf(error["Message"]) ?? "";
  const status = stringOf(error["status"]);
  if (status !== undefined) return { message, type: GOOGLE_TYPES.get(status) ?? "api_error", code: status };
  // Errors of the Messages API have no code.
  const code = body["type"] === "error" ? undefined : stringOf(error["code"]);
  return {
    message,
    type: error === body ? undefined : stringOf(error["type"]),
    ...(code === undefined ? {} : { code }),
  };
}

function valueOf(body: Buffer): Json | undefined {
  try {
    return parseJson(body);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

function typeByStatus(status: number): string {
  if (status === 400) return "invalid_request_error";
  if (status === 401 || status === 403) return "authentication_error";
  if (status === 404) return "not_found_error";
  return status === 429 ? "rate_limit_error" : "api_error";
}
