/**
 * Makes one list of what several targets listed: items are filtered by authorization, renamed in place, and joined in
 * the order of the targets. Bytes of items are never parsed and printed again, which would lose long integers and cost
 * more than all else here.
 */
import { eachElement, findMember, readString, type Span } from "../../message/spans.ts";
import { splice, type Edit } from "../../message/splice.ts";
import type { Message } from "../../message/message.ts";
import type { ItemKind } from "../../methods.ts";
import { editMessage, editString, eachNamed } from "./edit-message.ts";
import type { NamedTarget } from "../naming/names.ts";
import { editUiMeta, editVersionMembers, mayHold } from "./results.ts";
import { printUri } from "../naming/uris.ts";
import type { View } from "../naming/view.ts";

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

/** The answer of a target to a list request. */
export interface ListAnswer<T extends NamedTarget = NamedTarget> {
  readonly target: T;
  readonly message: Message;
}

/** An item of a target; the name is its own. */
interface Item {
  readonly span: Span;
  readonly name: string | undefined;
}

/** Names that a list leaves out although the caller may see them: those that several targets serve. */
export type Hides = (name: string) => boolean;

/** Rewrites the list of the only target; what else is in its result stays, the cursor included. */
export function viewList({ target, message }: ListAnswer, shape: ListShape, view: View): Message {
  const { bytes, payload } = message;
  if (message.kind !== "result" || payload === undefined) return message;
  const edits: Edit[] = editVersionMembers(bytes, payload, true, view.isModern);
  for (const list of eachNamed(bytes, payload, shape.member))
    edits.push(...editList(bytes, list, { shape, target, view, hides: undefined }));
  return editMessage(message, edits);
}

/** Returns the items of a target as clients see them: JSON texts separated by commas, empty when there are none. */
export function viewItems({ target, message }: ListAnswer, shape: ListShape, view: View, hides?: Hides): Buffer {
  const { bytes, payload } = message;
  const list = payload && findMember(bytes, payload, shape.member);
  if (list === undefined || bytes[list.start] !== 0x5b) return Buffer.alloc(0);
  const edits = editList(bytes, list, { shape, target, view, hides });
  const first = list.start + 1;
  const inner = { start: first, end: list.end - 1 };
  return spliceWithin(bytes, inner, edits);
}

/** Yields the names of the items of a list, as its target names them. */
export function* readListedNames({ bytes, payload }: Message, method: string): Generator<string> {
  const shape = LISTS.get(method);
  if (payload === undefined || shape === undefined) return;
  const list = findMember(bytes, payload, shape.member);
  if (list === undefined) return;
  for (const element of eachElement(bytes, list)) {
    const name = readOwnName(bytes, element, shape);
    if (name !== undefined) yield name;
  }
}

interface ListPlace {
  readonly shape: ListShape;
  readonly target: NamedTarget;
  readonly view: View;
  readonly hides: Hides | undefined;
}

function editList(bytes: Buffer, list: Span, place: ListPlace): Edit[] {
  const { shape, target, view, hides } = place;
  const needsNames = view.allows !== undefined || hides !== undefined;
  const rename = renamer(shape, target, view);
  const hasUi = shape.kind === "tool" && mayHold(bytes, "resourceUri");
  if (!needsNames && rename === undefined && !hasUi) return [];
  const edits: Edit[] = [];
  const removals = new ItemRemovals(edits);
  for (const span of eachElement(bytes, list)) {
    const item = needsNames ? { span, name: readOwnName(bytes, span, shape) } : { span, name: undefined };
    if (needsNames && isHidden(item, place)) {
      removals.remove(span);
      continue;
    }
    removals.keep(span);
    rename?.(bytes, span, edits);
    if (hasUi) edits.push(...editUiMeta(bytes, span, target, view));
  }
  removals.end();
  return edits;
}

/** An item without a name is hidden where rules exist: no rule could have been asked about it. */
function isHidden({ name }: Item, { shape, target, view, hides }: ListPlace): boolean {
  return name === undefined || view.allows?.(shape.kind, target.name, name) === false || hides?.(name) === true;
}

function readOwnName(bytes: Buffer, item: Span, { name }: ListShape): string | undefined {
  const found = findMember(bytes, item, name);
  return found === undefined ? undefined : readString(bytes, found);
}

type Rename = (bytes: Buffer, item: Span, edits: Edit[]) => void;

/** Returns what gives an item its name for clients; undefined when that is the target's own. */
function renamer({ kind, name }: ListShape, target: NamedTarget, { naming }: View): Rename | undefined {
  if (kind === "resource" || kind === "template")
    return (bytes, item, edits) => edits.push(...editString(bytes, item, name, (uri) => printUri(target, uri)));
  const prefix = kind === "task" ? naming.idPrefix(target) : naming.namePrefix(target);
  if (prefix === "") return undefined;
  return (bytes, item, edits) => {
    for (const { start } of eachNamed(bytes, item, name)) {
      // The prefix is a DNS label and a delimiter: it needs no escapes.
      if (bytes[start] === 0x22) edits.push({ start: start + 1, end: start + 1, text: prefix });
    }
  };
}

/** Collects the edits that remove items of a list with their commas: the one in front, or those before the first kept. */
class ItemRemovals {
  readonly #edits: Edit[];
  #keptEnd: number | undefined;
  #removedFrom: number | undefined;
  #removedTo = 0;

  constructor(edits: Edit[]) {
    this.#edits = edits;
  }

  remove({ start, end }: Span): void {
    this.#removedFrom ??= this.#keptEnd ?? start;
    this.#removedTo = end;
  }

  keep({ start, end }: Span): void {
    // In front of the first item that stays, the comma behind the removed ones goes with them.
    this.#cut(this.#keptEnd === undefined ? start : this.#removedTo);
    this.#keptEnd = end;
  }

  end(): void {
    this.#cut(this.#removedTo);
  }

  #cut(end: number): void {
    if (this.#removedFrom !== undefined) this.#edits.push({ start: this.#removedFrom, end, text: "" });
    this.#removedFrom = undefined;
  }
}

function spliceWithin(bytes: Buffer, { start, end }: Span, edits: Edit[]): Buffer {
  edits.sort((a, b) => a.start - b.start);
  const moved = edits.map((edit) => ({ start: edit.start - start, end: edit.end - start, text: edit.text }));
  return splice(bytes.subarray(start, end), moved);
}

/** Joins items of several targets to the JSON text of a list. */
export function joinItems(parts: readonly Buffer[]): Buffer {
  const list: Buffer[] = [Buffer.from("[")];
  for (const part of parts) {
    if (isBlank(part)) continue;
    if (list.length > 1) list.push(Buffer.from(","));
    list.push(part);
  }
  list.push(Buffer.from("]"));
  return Buffer.concat(list);
}

function isBlank(part: Buffer): boolean {
  return part.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}
