/**
 * Addresses of e-mail in their usual form (the dot-atom of RFC 5322 §3.4.1): no quoted local parts, no address
 * literals, and a domain of at least two labels whose last one begins with a letter.
 */
import type { Span } from "../../../../cel/functions/match-finder.ts";
import { isAsciiLetter, isDigit, isWordAt, type Entity } from "./entity.ts";

const LOCAL = "!#$%&'*+-/=?^_`{|}~.";

export const email: Entity = {
  mask: "<EMAIL_ADDRESS>",
  find(text) {
    const found: Span[] = [];
    let free = 0;
    for (let sign = text.indexOf("@"); sign !== -1; sign = text.indexOf("@", sign + 1)) {
      const start = startOfLocal(text, sign, free);
      if (start === sign) continue;
      const end = endOfDomain(text, sign + 1);
      if (end === undefined) continue;
      found.push({ start, end });
      free = end;
    }
    return found;
  },
};

/** @returns the position of the sign when nothing before it is a local part */
function startOfLocal(text: string, sign: number, from: number): number {
  if (text.charAt(sign - 1) === ".") return sign;
  let start = sign;
  while (start > from && (isWordAt(text, start - 1) || LOCAL.includes(text.charAt(start - 1)))) start--;
  // Quotes, slashes and the like around an address are no part of it.
  while (start < sign && !isWordAt(text, start)) start++;
  return start;
}

/** @returns the end of the longest domain at `from`; undefined when there is none */
function endOfDomain(text: string, from: number): number | undefined {
  let end: number | undefined;
  for (let label = from, labels = 0; ; labels++) {
    let at = label;
    while (isLabelAt(text, at)) at++;
    let last = at;
    while (last > label && text.charAt(last - 1) === "-") last--;
    if (last === label || text.charAt(label) === "-") return end;
    if (labels > 0 && isTopLevel(text, label, last)) end = last;
    if (last !== at || text.charAt(at) !== ".") return end;
    label = at + 1;
  }
}

function isLabelAt(text: string, at: number): boolean {
  return isWordAt(text, at) || text.charAt(at) === "-";
}

function isTopLevel(text: string, start: number, end: number): boolean {
  const code = text.charCodeAt(start);
  return end - start >= 2 && !isDigit(code) && (isAsciiLetter(code) || code >= 0x80);
}
