/** Changes messages in place of building new ones, for the rewriting of names, URIs and ids (`results.ts`, `params.ts`). */
import { isNamed, eachMember, readString, type Span } from "../../message/spans.ts";
import { splice, type Edit } from "../../message/splice.ts";
import type { Message } from "../../message/message.ts";

/** Applies edits to a message. @param edits inside of the message, not overlapping, in any order */
export function editMessage(message: Message, edits: Edit[], id: string | undefined = message.id): Message {
  if (edits.length === 0) return message;
  edits.sort((a, b) => a.start - b.start);
  const bytes = splice(message.bytes, edits);
  const { whole, payload } = message;
  const moved = payload && { start: moveStart(payload.start, edits), end: moveEnd(payload.end, edits) };
  return {
    ...message,
    bytes,
    id,
    whole: { start: whole.start, end: whole.end + bytes.length - message.bytes.length },
    payload: moved,
  };
}

/** Returns the position of the first byte of a value after edits before it. */
function moveStart(at: number, edits: readonly Edit[]): number {
  return edits.reduce((moved, edit) => (edit.start < at ? moved + growthOf(edit) : moved), at);
}

function moveEnd(at: number, edits: readonly Edit[]): number {
  return edits.reduce((moved, edit) => (edit.end <= at ? moved + growthOf(edit) : moved), at);
}

function growthOf({ start, end, text }: Edit): number {
  return Buffer.byteLength(text) - (end - start);
}

/** Returns the edits that change a member of an object, each one of the name, where it is a string. */
export function editString(bytes: Buffer, object: Span, name: string, change: (text: string) => string): Edit[] {
  return [...eachNamed(bytes, object, name)].flatMap((span) => editText(bytes, span, change));
}

/** Returns the edit that changes a string; none for other values, and where nothing changes. */
export function editText(bytes: Buffer, { start, end }: Span, change: (text: string) => string): Edit[] {
  const text = readString(bytes, { start, end });
  const changed = text === undefined ? undefined : change(text);
  return changed === undefined || changed === text ? [] : [{ start, end, text: JSON.stringify(changed) }];
}

/** Returns all objects that are the value of a member of this name: one, except in texts that repeat the name. */
export function* eachNamed(bytes: Buffer, object: Span, name: string): Generator<Span> {
  for (const member of eachMember(bytes, object)) if (isNamed(bytes, member, name)) yield member.value;
}
