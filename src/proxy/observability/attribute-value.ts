/**
 * Converts results of expressions into attribute values of bounded size: input of a client must not fill the memory or
 * a log. Used for logs, spans and OTLP records.
 */
import { isUtf8 } from "node:buffer";
import { doubleText, scalarText } from "../../cel/text.ts";
import { Flattened, Optional, Uint } from "../../cel/values.ts";
import { isListValue, type AttributeValue } from "../../telemetry/attributes.ts";

/** Maximum characters of one value; longer text is cut, and lists and maps lose the entries beyond. */
const MAX_LENGTH = 65_536;
const MAX_DEPTH = 32;
/** Cost of an entry of a list or map, besides its text. */
const ENTRY_LENGTH = 4;
const CUT = "…";

interface Room {
  left: number;
}

/** @returns undefined for a failure, null, and values without a text form: they become no attribute */
export function toAttribute(value: unknown): AttributeValue | undefined {
  return convert(value, { left: MAX_LENGTH }, 0) ?? undefined;
}

/** Returns approximately the number of characters that the value prints. */
export function lengthOf(value: AttributeValue | null): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return ENTRY_LENGTH;
  let length = ENTRY_LENGTH;
  if (isListValue(value)) for (const item of value) length += lengthOf(item) + ENTRY_LENGTH;
  else for (const [name, member] of value) length += name.length + lengthOf(member) + ENTRY_LENGTH;
  return length;
}

function convert(value: unknown, room: Room, depth: number): AttributeValue | null | undefined {
  room.left -= ENTRY_LENGTH;
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case "string":
      return cut(value, room);
    case "boolean":
    case "bigint":
      return value;
    case "number":
      return Number.isFinite(value) ? value : doubleText(value);
    default:
      break;
  }
  if (value instanceof Uint) return value.value;
  if (value instanceof Uint8Array) return cut(textOf(value), room);
  if (value instanceof Optional) return convert(value.value, room, depth);
  if (Array.isArray(value)) return depth >= MAX_DEPTH ? null : listOf(value, room, depth);
  if (value instanceof Flattened) return depth >= MAX_DEPTH ? null : mapOf(value.members, room, depth);
  if (value instanceof Map) return depth >= MAX_DEPTH ? null : mapOf(value, room, depth);
  const text = scalarText(value);
  return text === undefined ? undefined : cut(text, room);
}

function listOf(list: readonly unknown[], room: Room, depth: number): AttributeValue {
  const result: (AttributeValue | null)[] = [];
  for (const item of list) {
    if (room.left <= 0) break;
    result.push(convert(item, room, depth + 1) ?? null);
  }
  return result;
}

function mapOf(map: ReadonlyMap<unknown, unknown>, room: Room, depth: number): AttributeValue {
  const result = new Map<string, AttributeValue | null>();
  for (const [key, member] of map) {
    const name = scalarText(key);
    if (name === undefined) continue;
    room.left -= name.length;
    if (room.left <= 0) break;
    result.set(name, convert(member, room, depth + 1) ?? null);
  }
  return result;
}

/** Decodes bytes as UTF-8 where they are valid, as most bodies are, and as base64 otherwise. */
function textOf(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes;
  const start = Buffer.from(buffer, byteOffset, Math.min(byteLength, MAX_LENGTH + UTF8_TAIL));
  const isText = byteLength > start.length ? isUtf8(start.subarray(0, wholeCharacters(start))) : isUtf8(start);
  return start.toString(isText ? "utf8" : "base64");
}

const UTF8_TAIL = 4;

/** Returns the index at which the last character begins. */
function wholeCharacters(bytes: Buffer): number {
  let at = bytes.length - 1;
  while (at > 0 && ((bytes[at] as number) & 0xc0) === 0x80) at--; // below the length
  return at;
}

/** Cuts text without splitting a surrogate pair. */
function cut(text: string, room: Room): string {
  const allowed = Math.max(0, room.left);
  room.left -= text.length;
  if (text.length <= allowed) return text;
  const end = allowed > 0 && isHighSurrogate(text.charCodeAt(allowed - 1)) ? allowed - 1 : allowed;
  return `${text.slice(0, end)}${CUT}`;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
