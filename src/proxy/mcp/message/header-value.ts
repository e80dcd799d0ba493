/**
 * Text in header fields of MCP 2026-07-28: what a field value cannot hold, or what would look like it, is wrapped as
 * `=?base64?…?=`. The client side reads Mcp-Method and Mcp-Name with it, and targets get them so.
 */

const PREFIX = "=?base64?";
const SUFFIX = "?=";
const CANONICAL = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Visible ASCII, with blanks and tabs only inside (RFC 9110 §5.5). */
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

export function encodeHeaderValue(text: string): string {
  if (PLAIN.test(text) && !(text.startsWith(PREFIX) && text.endsWith(SUFFIX))) return text;
  return `${PREFIX}${Buffer.from(text).toString("base64")}${SUFFIX}`;
}

/** @returns undefined when the value is wrapped and what it holds is no canonical base64 of UTF-8 */
export function decodeHeaderValue(value: string): string | undefined {
  const text = value.replace(/^[\t ]+|[\t ]+$/g, "");
  if (!text.startsWith(PREFIX) || !text.endsWith(SUFFIX)) return text;
  const coded = text.slice(PREFIX.length, -SUFFIX.length);
  if (!CANONICAL.test(coded)) return undefined;
  const decoded = Buffer.from(coded, "base64");
  const result = decoded.toString("utf8");
  return Buffer.from(result).equals(decoded) ? result : undefined;
}
