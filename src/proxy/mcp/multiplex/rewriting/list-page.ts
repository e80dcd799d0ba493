/**
 * Reads a page of a list in one pass: where its items are, how their target names them, and where the target goes on.
 * Lists are the longest messages of MCP, and most of what the multiplexer costs is the reading of them.
 */
import { MemberCursor } from "../../message/member-cursor.ts";
import type { Message } from "../../message/message.ts";
import { skipChecked, skipSpace } from "../../message/scan.ts";
import { readString, type Span } from "../../message/spans.ts";
import type { ItemKind } from "../../methods.ts";

/** How the list of a method looks. */
export interface ListShape {
  readonly kind: ItemKind;
  /** Member of the result. */
  readonly member: string;
  /** Member of an item that names it. */
  readonly name: string;
}

export const LISTS: ReadonlyMap<string, ListShape> = new Map<string, ListShape>([
  ["tools/list", { kind: "tool", member: "tools", name: "name" }],
  ["prompts/list", { kind: "prompt", member: "prompts", name: "name" }],
  ["resources/list", { kind: "resource", member: "resources", name: "uri" }],
  ["resources/templates/list", { kind: "template", member: "resourceTemplates", name: "uriTemplate" }],
  ["tasks/list", { kind: "task", member: "tasks", name: "taskId" }],
]);

export interface ListItem extends Span {
  /** Values of all members that name it, the last of which counts; more than one only in texts that repeat the name. */
  readonly names: readonly Span[];
}

export interface ListPage {
  readonly bytes: Buffer;
  /** Position of the list; undefined when the result has none. */
  readonly list: Span | undefined;
  readonly items: readonly ListItem[];
  readonly nextCursor: string | undefined;
}

const OPEN_BRACKET = 0x5b;
const COMMA = 0x2c;

/** @param message a result */
export function readPage({ bytes, payload }: Message, shape: ListShape): ListPage {
  const items: ListItem[] = [];
  let list: Span | undefined;
  let nextCursor: string | undefined;
  const members = new MemberCursor(bytes);
  if (payload === undefined || !members.open(payload.start)) return { bytes, list, items, nextCursor };
  while (members.nextName()) {
    const { start } = members;
    const isList = members.isNamed(shape.member) && bytes[start] === OPEN_BRACKET;
    // Of equal members the last one counts.
    if (isList) items.length = 0;
    const end = isList ? readItems(bytes, start, shape.name, items) : skipChecked(bytes, start);
    if (isList) list = { start, end };
    // Some servers write an empty cursor at the end, with which the list would begin again.
    else if (members.isNamed("nextCursor")) nextCursor = readString(bytes, { start, end }) || undefined;
    members.passValue(end);
  }
  return { bytes, list, items, nextCursor };
}

/** @returns the position after the list */
function readItems(bytes: Buffer, list: number, name: string, items: ListItem[]): number {
  const members = new MemberCursor(bytes);
  let at = skipSpace(bytes, list + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_BRACKET) {
    const names: Span[] = [];
    let end: number;
    if (members.open(at)) {
      while (members.next()) if (members.isNamed(name)) names.push({ start: members.start, end: members.end });
      end = members.objectEnd;
    } else end = skipChecked(bytes, at);
    items.push({ start: at, end, names });
    const behind = skipSpace(bytes, end);
    at = bytes[behind] === COMMA ? skipSpace(bytes, behind + 1) : behind;
  }
  return at + 1;
}

const CLOSE_BRACKET = 0x5d;

/** Returns the name of an item as its target has it; undefined when it has none. */
export function nameOf({ bytes }: ListPage, { names }: ListItem): string | undefined {
  const last = names.at(-1);
  return last === undefined ? undefined : readString(bytes, last);
}

/** Yields the names of the items of a page, as their target has them. */
export function* namesOf(page: ListPage): Generator<string> {
  for (const item of page.items) {
    const name = nameOf(page, item);
    if (name !== undefined) yield name;
  }
}
