/** Puts what a guardrail answered into a message, once it is known to be what it must be. */
import { isUtf8 } from "node:buffer";
import { readMessage, type Message } from "../message/message.ts";
import { skipSpace, skipValue } from "../message/scan.ts";
import { insertMember, splice } from "../message/splice.ts";

const OPEN_BRACE = 0x7b;

/** Decides whether bytes are one JSON value and nothing else: more could add members to the message around it. */
export function isJson(bytes: Uint8Array): boolean {
  if (!isUtf8(bytes)) return false;
  const end = skipValue(bytes, skipSpace(bytes, 0));
  return end >= 0 && skipSpace(bytes, end) === bytes.length;
}

/**
 * Replaces the params of a request, or the result of a response.
 * @param payload bytes of a service
 * @returns undefined when they are not a JSON object
 */
export function withPayload(message: Message, payload: Uint8Array): Message | undefined {
  const { bytes, whole, payload: old } = message;
  const text = Buffer.from(payload);
  if (!isJson(text) || text[skipSpace(text, 0)] !== OPEN_BRACE) return undefined;
  // A response always has a result.
  const edit = old === undefined ? insertMember(bytes, whole, "params", text.toString()) : { ...old, text };
  const changed = readMessage(splice(bytes, [edit]));
  return "kind" in changed ? changed : undefined;
}
