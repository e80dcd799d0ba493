/**
 * Typed access to fields of a client's request body, for formats and converters. A field of another type is refused
 * with 400 and its path. `null` counts as absent, as the providers treat it.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { Json, JsonObject } from "./json.ts";

/** @param reason begins with the path of the field, if there is one */
export function invalidRequest(reason: string, cause?: unknown): ProxyError {
  return new ProxyError("llm_request_invalid", { text: `failed to process LLM request: ${reason}`, cause });
}

export function readText(value: Json | undefined, path: string): string | undefined {
  if (typeof value === "string") return value;
  return refuseUnlessAbsent(value, path, "a string");
}

export function readBoolean(value: Json | undefined, path: string): boolean | undefined {
  if (typeof value === "boolean") return value;
  return refuseUnlessAbsent(value, path, "a boolean");
}

export function readNumber(value: Json | undefined, path: string): number | undefined {
  // JSON has numbers beyond those of a double, which would be printed as null.
  if (typeof value === "number" && Number.isFinite(value)) return value;
  return refuseUnlessAbsent(value, path, "a number");
}

/** Reads a number of tokens or of choices. */
export function readCount(value: Json | undefined, path: string): number | undefined {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number; // a safe integer is a number
  return refuseUnlessAbsent(value, path, "a whole number that is not negative");
}

function readList(value: Json | undefined, path: string): readonly Json[] | undefined {
  if (Array.isArray(value)) return value;
  return refuseUnlessAbsent(value, path, "a list");
}

export function readObject(value: Json | undefined, path: string): JsonObject | undefined {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  return refuseUnlessAbsent(value, path, "an object");
}

/** @throws ProxyError llm_request_invalid when the value is absent or has another type */
export function requireText(value: Json | undefined, path: string): string {
  if (typeof value !== "string") throw invalidRequest(`${path} must be a string`);
  return value;
}

export function requireList(value: Json | undefined, path: string): readonly Json[] {
  if (!Array.isArray(value)) throw invalidRequest(`${path} must be a list`);
  return value;
}

export function requireObject(value: Json | undefined, path: string): JsonObject {
  return readObject(value, path) ?? refuse(path, "an object");
}

/**
 * Reads a list of objects; absent means empty.
 * @param path of the list
 * @throws ProxyError llm_request_invalid for another entry
 */
export function readObjects(value: Json | undefined, path: string): JsonObject[] {
  return (readList(value, path) ?? []).map((entry, at) => requireObject(entry, `${path}[${at}]`));
}

function refuseUnlessAbsent(value: Json | undefined, path: string, type: string): undefined {
  return value === undefined || value === null ? undefined : refuse(path, type);
}

function refuse(path: string, type: string): never {
  throw invalidRequest(`${path} must be ${type}`);
}
