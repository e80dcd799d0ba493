/**
 * The variables of expressions as JSON for `/debug/trace`, of bounded size and with secrets masked: credentials that
 * clients send never leave the process unless an operator asks for them. Bodies have events of their own.
 */
import { AttributeMap, Double, Flattened, isMap, Optional, REDACTED, Secret, Uint } from "../../cel/values.ts";
import type { Scope } from "../../cel/scope.ts";
import { scalarText } from "../../cel/text.ts";
import { messageOf } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";
import { queryOf } from "../observability/query.ts";

/** What must not be shown. */
export interface Masks {
  /** Names of header fields, in lower case. */
  readonly headers: ReadonlySet<string>;
  /** Names of query parameters, in lower case. */
  readonly parameters: ReadonlySet<string>;
}

/** Header fields that hold credentials by their definition, or by the habit of services. */
export const SECRET_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
  "x-api-key",
  "api-key",
  "apikey",
  "x-auth-token",
  "x-goog-api-key",
  "x-amz-security-token",
  "x-csrf-token",
  "mcp-session-id",
]);

/** Roots that hold the claims or the name of a verified client, and with them what it proved that by. */
const ROOTS = [
  "request",
  "source",
  "destination",
  "proxy",
  "env",
  "jwt",
  "apiKey",
  "basicAuth",
  "extauthz",
  "extproc",
  "metadata",
  "backend",
  "llm",
  "mcp",
  "mcpGuardrails",
  "response",
] as const;

const MAX_DEPTH = 12;
const MAX_TEXT = 16_384;
/** Characters of one state: a prompt of many megabytes must not be copied for each event. */
const MAX_STATE = 131_072;
const CUT = "…";

/** Members that are left out: bodies and what is parsed of them. */
const LEFT_OUT: ReadonlySet<string> = new Set(["body", "bodyPrefix", "prompt", "completion"]);
/** Members of `request` whose text has the query. */
const WITH_QUERY: ReadonlySet<string> = new Set(["uri", "pathAndQuery"]);

interface Room {
  left: number;
}

/**
 * @param scope supplies the roots
 * @param masks undefined when everything is shown
 * @param only names of roots; by default all
 */
export function stateOf(scope: Scope, masks: Masks | undefined, only?: ReadonlySet<string>): Record<string, unknown> {
  const room = { left: MAX_STATE };
  const state: Record<string, unknown> = {};
  for (const name of ROOTS) {
    const root = only === undefined || only.has(name) ? scope.root(name) : undefined;
    if (root === undefined) continue;
    const printed = printRoot(name, root, masks, room);
    if (!isEmpty(printed)) state[name] = printed;
  }
  return state;
}

/** Converts the result of an expression. */
export function printValue(value: unknown): unknown {
  return print(value, { left: MAX_TEXT }, 0);
}

function printRoot(name: string, root: unknown, masks: Masks | undefined, room: Room): unknown {
  const printed = print(root, room, 0);
  if (masks === undefined || !isRecord(printed)) return printed;
  if (isRecord(printed["headers"])) printed["headers"] = maskHeaders(printed["headers"], masks.headers);
  if (name === "apiKey" && "key" in printed) printed["key"] = REDACTED;
  for (const member of name === "request" ? WITH_QUERY : [])
    if (typeof printed[member] === "string") printed[member] = maskQuery(printed[member], masks.parameters);
  return printed;
}

/** Masks the values of header fields, by name in lower case. */
export function maskHeaders(
  headers: Readonly<Record<string, unknown>>,
  secret: ReadonlySet<string>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secret.has(name.toLowerCase()) ? REDACTED : value]),
  );
}

export function maskQuery(target: string, parameters: ReadonlySet<string>): string {
  const query = queryOf(target, parameters);
  return query === undefined ? target : `${target.slice(0, target.indexOf("?"))}?${query}`;
}

function print(value: unknown, room: Room, depth: number): unknown {
  room.left -= 4;
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case "string":
      return cut(value, room);
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    default:
      break;
  }
  if (depth >= MAX_DEPTH || room.left <= 0) return CUT;
  if (value instanceof Double) return value.value;
  if (value instanceof Uint) return print(value.value, room, depth);
  if (value instanceof Secret) return REDACTED;
  if (value instanceof Uint8Array) return cut(Buffer.from(value.subarray(0, MAX_TEXT)).toString("base64"), room);
  if (value instanceof Optional) return print(value.value, room, depth);
  if (value instanceof Flattened) return print(value.members, room, depth);
  if (Array.isArray(value)) return value.slice(0, 1_000).map((item) => print(item, room, depth + 1));
  if (value instanceof Date) return value.toISOString();
  return isMap(value) ? printMembers(value, room, depth) : cut(scalarText(value) ?? "", room);
}

function printMembers(value: unknown, room: Room, depth: number): Record<string, unknown> {
  const printed: Record<string, unknown> = {};
  for (const [name, read] of membersOf(value)) {
    if (LEFT_OUT.has(name) || room.left <= 0) continue;
    room.left -= name.length;
    const member = readMember(read);
    if (member !== undefined) printed[name] = print(member, room, depth + 1);
  }
  return printed;
}

function membersOf(value: unknown): readonly (readonly [string, () => unknown])[] {
  if (value instanceof AttributeMap) return value.names().map((name) => [name, () => value.get(name)] as const);
  if (value instanceof Map) return [...value].map(([key, member]) => [scalarText(key) ?? "", () => member] as const);
  return isRecord(value) ? Object.entries(value).map(([name, member]) => [name, () => member] as const) : [];
}

/** An attribute that cannot be computed shows why, and the others stay visible. */
function readMember(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return messageOf(error);
  }
}

function cut(text: string, room: Room): string {
  const allowed = Math.max(0, Math.min(MAX_TEXT, room.left));
  room.left -= Math.min(text.length, allowed);
  return text.length <= allowed ? text : `${text.slice(0, allowed)}${CUT}`;
}

function isEmpty(value: unknown): boolean {
  return value === null || (isRecord(value) && Object.keys(value).length === 0);
}
