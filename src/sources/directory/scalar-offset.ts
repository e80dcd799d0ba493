/**
 * Maps a character of a text value to its position in the file, for plain, quoted and block scalars. parse.ts uses it
 * for errors inside expressions.
 */
import { isScalar } from "yaml";
import type { Span } from "./source-locations.ts";

/**
 * Returns the span of the word that begins at `offset` of the value. Returns undefined when the value is not written
 * character by character, as with numeric escapes.
 */
export function spanInScalar(text: string, node: unknown, offset: number): Span | undefined {
  if (!isScalar(node) || typeof node.value !== "string" || node.range === undefined || node.range === null)
    return undefined;
  const { value } = node;
  const [start, end] = node.range;
  const isBlock = node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED";
  const isQuoted = node.type === "QUOTE_SINGLE" || node.type === "QUOTE_DOUBLE";
  const first = isBlock ? text.indexOf("\n", start) + 1 : isQuoted ? start + 1 : start;
  const at = placeInScalar({ text, from: first, to: isQuoted ? end - 1 : end, type: node.type }, value, offset);
  if (at === undefined) return undefined;
  const word = /^[\w.]+/.exec(value.slice(offset))?.[0] ?? "";
  const length = text.startsWith(word, at) ? word.length : 0;
  return { start: at, end: at + Math.max(1, length) };
}

interface Written {
  readonly text: string;
  readonly from: number;
  readonly to: number;
  readonly type: string | null | undefined;
}

/**
 * Compares value and source text character by character. Line breaks and indentation differ between the two, so both
 * sides skip white space.
 */
function placeInScalar({ text, from, to, type }: Written, value: string, offset: number): number | undefined {
  let at = from;
  for (let read = 0; read <= value.length; read++) {
    const wanted = value[read];
    if (wanted !== undefined && isSpace(wanted) && read < offset) continue;
    while (at < to && isSpace(text[at])) at++;
    if (type === "QUOTE_DOUBLE" && text[at] === "\\" && (text[at + 1] === '"' || text[at + 1] === "\\")) at++;
    if (read >= offset) return Math.min(at, Math.max(from, to - 1));
    if (text[at] !== wanted) return undefined;
    at += type === "QUOTE_SINGLE" && wanted === "'" ? 2 : 1;
  }
  return undefined;
}

function isSpace(character: string | undefined): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}
