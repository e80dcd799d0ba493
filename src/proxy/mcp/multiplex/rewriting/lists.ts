/**
 * Makes one list of what several targets listed: items are filtered by authorization, renamed in place, and joined in
 * the order of the targets. Bytes of items are never parsed and printed again, which would lose long integers and cost
 * more than all else here.
 */
import type { Message } from "../../message/message.ts";
import type { Span } from "../../message/spans.ts";
import { spliceInto, splicedLength, type Edit } from "../../message/splice.ts";
import type { NamedTarget } from "../naming/names.ts";
import { printUri } from "../naming/uris.ts";
import type { View } from "../naming/view.ts";
import { editMessage, editText } from "./edit-message.ts";
import { nameOf, readPage, type ListItem, type ListPage, type ListShape } from "./list-page.ts";
import { editUiMeta, editVersionMembers, mayHold } from "./results.ts";

/** A page of a target. */
export interface TargetPage<T extends NamedTarget = NamedTarget> {
  readonly target: T;
  readonly page: ListPage;
}

/** Names that a list leaves out although the caller may see them: those that several targets serve. */
export type Hides = (name: string) => boolean;

/** Rewrites the list of the only target; what else is in its result stays, the cursor included. */
export function viewList(message: Message, target: NamedTarget, shape: ListShape, view: View): Message {
  const { bytes, payload } = message;
  if (message.kind !== "result" || payload === undefined) return message;
  const edits = editVersionMembers(bytes, payload, true, view.isModern);
  return editMessage(message, [
    ...edits,
    ...editItems({ page: readPage(message, shape), shape, target, view, hides: undefined }),
  ]);
}

/** Returns the JSON text of the list of all pages, in their order. */
export function joinPages(pages: readonly TargetPage[], shape: ListShape, view: View, hides?: Hides): Buffer {
  const parts: { readonly bytes: Buffer; readonly inner: Span; readonly edits: Edit[]; readonly length: number }[] = [];
  let length = 1;
  for (const { target, page } of pages) {
    const { bytes, items } = page;
    const [first, last] = [items[0], items.at(-1)];
    if (first === undefined || last === undefined) continue;
    const inner = { start: first.start, end: last.end };
    const edits = editItems({ page, shape, target, view, hides });
    edits.sort((a, b) => a.start - b.start);
    const partLength = splicedLength(inner, edits);
    if (partLength === 0) continue;
    parts.push({ bytes, inner, edits, length: partLength });
    length += partLength + 1;
  }
  const list = Buffer.allocUnsafe(Math.max(length, 2));
  let at = list.write("[");
  for (const [index, { bytes, inner, edits }] of parts.entries()) {
    if (index > 0) at += list.write(",", at);
    at = spliceInto(list, at, { bytes, inner, edits });
  }
  list.write("]", at);
  return list;
}

interface ListPlace {
  readonly page: ListPage;
  readonly shape: ListShape;
  readonly target: NamedTarget;
  readonly view: View;
  readonly hides: Hides | undefined;
}

function editItems(place: ListPlace): Edit[] {
  const { page, shape, target, view, hides } = place;
  const { bytes, items } = page;
  const isFiltered = view.allows !== undefined || hides !== undefined;
  const rename = renamer(shape, target, view);
  const hasUi = shape.kind === "tool" && mayHold(bytes, "resourceUri");
  if (!isFiltered && rename === undefined && !hasUi) return [];
  const edits: Edit[] = [];
  const removals = new ItemRemovals(edits);
  for (const item of items) {
    if (isFiltered && isHidden(item, place)) {
      removals.remove(item);
      continue;
    }
    removals.keep(item);
    if (rename !== undefined) for (const name of item.names) rename(bytes, name, edits);
    if (hasUi) edits.push(...editUiMeta(bytes, item, target, view));
  }
  removals.end();
  return edits;
}

/** An item without a name is hidden where rules exist: no rule could have been asked about it. */
function isHidden(item: ListItem, { page, shape, target, view, hides }: ListPlace): boolean {
  const name = nameOf(page, item);
  if (name === undefined || hides?.(name) === true) return true;
  return view.allows?.(shape.kind, target.name, name) === false;
}

type Rename = (bytes: Buffer, name: Span, edits: Edit[]) => void;

const QUOTE = 0x22;

/** Returns what gives an item its name for clients; undefined when that is the target's own. */
function renamer({ kind }: ListShape, target: NamedTarget, { naming }: View): Rename | undefined {
  if (kind === "resource" || kind === "template")
    return (bytes, span, edits) => edits.push(...editText(bytes, span, (uri) => printUri(target, uri)));
  const prefix = kind === "task" ? naming.idPrefix(target) : naming.namePrefix(target);
  if (prefix === "") return undefined;
  const text = Buffer.from(prefix);
  return (bytes, { start }, edits) => {
    // The prefix is a DNS label and a delimiter: it needs no escapes.
    if (bytes[start] === QUOTE) edits.push({ start: start + 1, end: start + 1, text });
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
