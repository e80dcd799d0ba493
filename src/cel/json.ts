/** Converts values to and from JSON text (RFC 8259), and results to the form that callers of an expression get. */
import { type Run, MAX_RESULT_LENGTH } from "./budget.ts";
import { COST_LIMIT, Failure, NO_OVERLOAD } from "./errors.ts";
import { scalarText } from "./text.ts";
import { Double, Flattened, Uint, adopt, isMap, kindOf, mapGet, mapKeys, Optional, Secret } from "./values.ts";

/** Prints compact JSON: bytes as base64, times as their text, and integral doubles without ".0". */
export function jsonText(run: Run, value: unknown): string | Failure {
  if (run.spend(1)) return COST_LIMIT;
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : NO_OVERLOAD;
  if (typeof value === "bigint") return String(value);
  if (value instanceof Double) return jsonText(run, value.value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return bytesText(run, value);
  if (Array.isArray(value)) return listText(run, value);
  if (value instanceof Optional) return value.value === undefined ? "null" : jsonText(run, value.value);
  if (value instanceof Flattened) return mapText(run, value.members);
  if (isMap(value)) return mapText(run, value);
  const text = scalarText(value);
  if (text === undefined) return NO_OVERLOAD;
  return run.spendLength(text.length) ? COST_LIMIT : JSON.stringify(text);
}

/**
 * Joins the parts of a list or map and charges for the result, because each level of a nested value copies the levels
 * below.
 */
function joined(run: Run, open: string, parts: readonly string[], close: string): string | Failure {
  const text = `${open}${parts.join(",")}${close}`;
  return run.spendLength(text.length) ? COST_LIMIT : text;
}

function bytesText(run: Run, value: Uint8Array): string | Failure {
  return run.spendLength(value.length) ? COST_LIMIT : JSON.stringify(Buffer.from(value).toString("base64"));
}

function listText(run: Run, list: readonly unknown[]): string | Failure {
  const parts: string[] = [];
  for (const item of list) {
    const text = jsonText(run, adopt(item));
    if (text instanceof Failure) return text;
    parts.push(text);
  }
  return joined(run, "[", parts, "]");
}

function mapText(run: Run, map: Parameters<typeof mapKeys>[0]): string | Failure {
  const parts: string[] = [];
  for (const key of mapKeys(map, run)) {
    const name = scalarText(key);
    const value = mapGet(map, key, run);
    if (name === undefined) return NO_OVERLOAD;
    if (value === undefined) continue;
    if (value instanceof Failure) return value;
    const text = jsonText(run, value);
    if (text instanceof Failure) return text;
    parts.push(`${JSON.stringify(name)}:${text}`);
  }
  return joined(run, "{", parts, "}");
}

export function parseJson(run: Run, text: string): unknown {
  if (spendJson(run, text)) return COST_LIMIT;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The message of the JSON parser quotes the text, which may be the body of a client.
    return new Failure("invalid_argument", "not JSON");
  }
}

/** Bytes of plain text, and number of values, that parsing handles per step. */
const BYTES_PER_STEP = 256;
const VALUES_PER_STEP = 2;

/**
 * Charges for parsing. Many small values take far longer to parse than one long string, so it counts the separators of
 * values first; the scan is fast where there are few, and stops where there are too many.
 */
function spendJson(run: Run, text: string): boolean {
  if (run.spend(1 + Math.trunc(text.length / BYTES_PER_STEP))) return true;
  let left = run.steps * VALUES_PER_STEP;
  const most = left;
  for (const separator of [",", "[", "{"]) {
    for (let at = text.indexOf(separator); at >= 0; at = text.indexOf(separator, at + 1)) {
      if (--left < 0) break;
    }
  }
  return run.spend(Math.ceil((most - left) / VALUES_PER_STEP));
}

/** Converts a result to the form that `Expression.evaluate` promises. */
export function toHost(run: Run, value: unknown): unknown {
  if (--run.steps < 0) return COST_LIMIT;
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === "bigint") return value;
  if (value instanceof Double) return value.value;
  if (value instanceof Secret) return value.toString();
  if (value instanceof Failure) return value;
  if (Array.isArray(value)) return listToHost(run, value);
  if (isMap(value)) return mapToHost(run, value);
  if (value instanceof Flattened) {
    const members = mapToHost(run, value.members);
    return members instanceof Failure ? members : new Flattened(members);
  }
  if (value instanceof Uint8Array) return value.length > MAX_RESULT_LENGTH ? COST_LIMIT : value;
  return kindOf(value) === undefined ? NO_OVERLOAD : value;
}

function listToHost(run: Run, list: readonly unknown[]): unknown {
  const result: unknown[] = [];
  for (const item of list) {
    const converted = toHost(run, adopt(item));
    if (converted instanceof Failure) return converted;
    result.push(converted);
  }
  return result;
}

function mapToHost(run: Run, map: Parameters<typeof mapKeys>[0]): Map<unknown, unknown> | Failure {
  const result = new Map<unknown, unknown>();
  for (const key of mapKeys(map, run)) {
    const value = mapGet(map, key, run);
    if (value === undefined) continue;
    const name = toHost(run, key);
    const converted = toHost(run, value);
    if (converted instanceof Failure) return converted;
    result.set(name, converted);
  }
  return result;
}
