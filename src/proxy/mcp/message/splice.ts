/** Edits JSON text at positions that `spans.ts` found; all other bytes stay as they came. */
import { eachMember, isNamed, type Member, type Span } from "./spans.ts";

/** Replaces the bytes from `start` to `end`; an insertion has `start` equal to `end`. */
export interface Edit extends Span {
  readonly text: string | Buffer;
}

/** Applies edits. @param edits in order of position; they do not overlap */
export function splice(bytes: Buffer, edits: readonly Edit[]): Buffer {
  if (edits.length === 0) return bytes;
  const inner = { start: 0, end: bytes.length };
  const out = Buffer.allocUnsafe(splicedLength(inner, edits));
  spliceInto(out, 0, { bytes, inner, edits });
  return out;
}

/** A part of a text, and the edits inside of it. */
export interface EditedPart {
  readonly bytes: Buffer;
  readonly inner: Span;
  /** In order of position; they do not overlap. */
  readonly edits: readonly Edit[];
}

/** Returns the bytes that a part takes after its edits. */
export function splicedLength(inner: Span, edits: readonly Edit[]): number {
  let length = inner.end - inner.start;
  for (const { start, end, text } of edits)
    length += (typeof text === "string" ? Buffer.byteLength(text) : text.length) - (end - start);
  return length;
}

/** Copies a part with its edits applied. @returns the position after it in `out` */
export function spliceInto(out: Buffer, at: number, { bytes, inner, edits }: EditedPart): number {
  let read = inner.start;
  let written = at;
  for (const { start, end, text } of edits) {
    written += bytes.copy(out, written, read, start);
    written += typeof text === "string" ? out.write(text, written) : text.copy(out, written);
    read = end;
  }
  return written + bytes.copy(out, written, read, inner.end);
}

/** Returns the edit that puts a member in front of all others of an object. @param text JSON of the value */
export function insertMember(bytes: Buffer, object: Span, name: string, text: string): Edit {
  const at = object.start + 1;
  const isEmpty = eachMember(bytes, object).next().done === true;
  return { start: at, end: at, text: `${JSON.stringify(name)}:${text}${isEmpty ? "" : ","}` };
}

/** Returns the edits that give a member a value: every one of the name is replaced, or one is inserted. */
export function setMember(bytes: Buffer, object: Span, name: string, text: string): Edit[] {
  const edits: Edit[] = [];
  for (const member of eachMember(bytes, object))
    if (isNamed(bytes, member, name)) edits.push({ ...member.value, text });
  return edits.length > 0 ? edits : [insertMember(bytes, object, name, text)];
}

/** Returns the edits that remove every member with one of the names, with their commas. */
export function removeMembers(bytes: Buffer, object: Span, ...names: readonly string[]): Edit[] {
  const members = [...eachMember(bytes, object)];
  const isRemoved = (member: Member): boolean => names.some((name) => isNamed(bytes, member, name));
  const edits: Edit[] = [];
  let kept = false;
  for (const [at, member] of members.entries()) {
    if (!isRemoved(member)) {
      kept = true;
      continue;
    }
    // The comma in front goes with the member; in front of the first one that stays, the comma behind it does.
    const before = members[at - 1];
    const after = members[at + 1];
    if (kept && before !== undefined) edits.push({ start: before.value.end, end: member.value.end, text: "" });
    else edits.push({ start: member.name.start, end: after?.name.start ?? member.value.end, text: "" });
  }
  return edits;
}
