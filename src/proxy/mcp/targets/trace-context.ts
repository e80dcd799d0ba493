/**
 * Copies the trace context of a request (W3C Trace Context, Baggage) into `_meta` of its message, where MCP servers look
 * for it.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import type { Message } from "../message/message.ts";
import { findMember } from "../message/spans.ts";
import { insertMember, setMember, splice } from "../message/splice.ts";

const FIELDS = ["traceparent", "tracestate", "baggage"] as const;
const OPEN_BRACE = 0x7b;

/** Returns the bytes to send. Responses have no `_meta` of ours, and messages without a trace stay as they are. */
export function withTraceContext({ bytes, kind, whole, payload }: Message, headers: HeaderList): Buffer {
  if (kind === "result" || kind === "error") return bytes;
  const fields: [name: string, text: string][] = [];
  for (const name of FIELDS) {
    const value = headers.get(name);
    if (value !== undefined) fields.push([name, JSON.stringify(value)]);
  }
  if (fields.length === 0) return bytes;
  const meta = `{${fields.map(([name, text]) => `"${name}":${text}`).join(",")}}`;
  if (payload === undefined) return splice(bytes, [insertMember(bytes, whole, "params", `{"_meta":${meta}}`)]);
  const found = findMember(bytes, payload, "_meta");
  if (found === undefined) return splice(bytes, [insertMember(bytes, payload, "_meta", meta)]);
  // A `_meta` that is no object is the target's to refuse.
  if (bytes[found.start] !== OPEN_BRACE) return bytes;
  const object = bytes.subarray(found.start, found.end);
  let changed = object;
  for (const [name, text] of fields)
    changed = splice(changed, setMember(changed, { start: 0, end: changed.length }, name, text));
  return splice(bytes, [{ ...found, text: changed }]);
}
