/**
 * Finds the item that a request of a client names, and the target that owns it. Requests that name none of the targets'
 * items end here with the error that clients get for an item that does not exist.
 */
import type { ItemKind } from "../../methods.ts";
import { ERROR_CODES, McpError } from "../../mcp-error.ts";
import { eachNamed, editMessage } from "./edit-message.ts";
import type { Message } from "../../message/message.ts";
import { eachMember, isLike, isNamed, readString, type Span } from "../../message/spans.ts";
import type { Edit } from "../../message/splice.ts";
import { editOwnRelatedTask } from "./results.ts";

/** The item of a request as the client named it. */
export interface NamedItem {
  readonly kind: ItemKind;
  readonly name: string;
  /** Position of the name in the message. */
  readonly span: Span;
}

/** The members of a completion's reference that name its item, by type of the reference. */
const REFERENCES: ReadonlyMap<string, { readonly kind: ItemKind; readonly member: string }> = new Map([
  ["ref/prompt", { kind: "prompt", member: "name" }],
  ["ref/resource", { kind: "resource", member: "uri" }],
]);

/**
 * Reads the item that a request names. @param path of the name in the params
 * @throws McpError invalid params when it names none, or more than one: the target could read another one than we do
 */
export function readItem(message: Message, kind: ItemKind | undefined, path: readonly string[]): NamedItem {
  if (kind !== undefined) return { kind, ...readName(message, path) };
  const type = readName(message, ["ref", "type"]).name;
  const reference = REFERENCES.get(type);
  if (reference === undefined) throw invalidParams(`unknown type of reference: ${type}`);
  return { kind: reference.kind, ...readName(message, ["ref", reference.member]) };
}

function readName(
  { bytes, payload }: Message,
  path: readonly string[],
): { readonly name: string; readonly span: Span } {
  let span = payload;
  for (const member of path) span = span && findOnly(bytes, span, member);
  const name = span && readString(bytes, span);
  if (span === undefined || name === undefined) throw invalidParams(`params.${path.join(".")} must be a string`);
  return { name, span };
}

/**
 * Returns the value of a member that decides where a request goes.
 * @throws McpError when another member has the same name, or one that differs in case only: parsers differ in which of
 *     them they take, and the target could read another item than the one that was authorized
 */
export function findOnly(bytes: Buffer, object: Span, name: string): Span | undefined {
  let found: Span | undefined;
  for (const member of eachMember(bytes, object)) {
    if (!isNamed(bytes, member, name)) {
      if (isLike(readString(bytes, member.name), name)) throw invalidParams(`${name} occurs in another spelling`);
      continue;
    }
    if (found !== undefined) throw invalidParams(`${name} occurs twice`);
    found = member.value;
  }
  return found;
}

function invalidParams(text: string): McpError {
  return new McpError(ERROR_CODES.invalidParams, text);
}

/** Returns the request as its target shall read it, with the target's own name of the item. */
export function renameItem(message: Message, { name, span }: NamedItem, own: string): Message {
  return name === own ? message : editMessage(message, [{ ...span, text: JSON.stringify(own) }]);
}

const UNKNOWN: Readonly<Record<ItemKind, string>> = {
  tool: "Unknown tool",
  prompt: "Unknown prompt",
  resource: "Resource not found",
  template: "Resource not found",
  task: "Task not found",
};

/** Versions before this one have statuses and codes of their own for items that do not exist. */
const JUNE_2025 = "2025-06-18";

/**
 * Returns the error for an item that does not exist, and for one that the caller may not use: the answers must not
 * differ. @param version of the protocol that the client speaks
 */
export function unknownItem(
  { kind, name }: Pick<NamedItem, "kind" | "name">,
  version: string,
  isModern: boolean,
): McpError {
  const isResource = kind === "resource" || kind === "template";
  const code = isResource && !isModern ? ERROR_CODES.resourceNotFound : ERROR_CODES.invalidParams;
  // Versions are dates, which compare as text.
  return new McpError(code, `${UNKNOWN[kind]}: ${name}`, { status: version < JUNE_2025 ? 400 : 200 });
}

/** Returns the answer of a client to a request of a target, as that target shall read it. */
export function editAnswer(message: Message, id: string | undefined, taskPrefix: string): Message {
  const { bytes, whole, payload } = message;
  const edits: Edit[] = payload === undefined ? [] : editOwnRelatedTask(bytes, payload, taskPrefix);
  if (id !== undefined && id !== message.id)
    for (const span of eachNamed(bytes, whole, "id")) edits.push({ ...span, text: id });
  return editMessage(message, edits, id);
}
