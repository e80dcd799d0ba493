/** Answers of the multiplexer: what it has made itself, and what targets said and it has rewritten. */
import { HeaderList } from "../../../lib/header-list.ts";
import { printError, type McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { findMember, wholeOf } from "../message/spans.ts";
import type { McpAnswer } from "../targets/target.ts";

/** Makes an answer of one message. */
export function answerWith(message: Message): McpAnswer {
  return { ...streamOf(yieldOnly(message), doNothing), only: message };
}

async function* yieldOnly(message: Message): AsyncGenerator<Message> {
  yield message;
}

/** Makes an answer of messages that come over time. */
export function streamOf(messages: McpAnswer["messages"], cancel: () => void): McpAnswer {
  return { status: 200, headers: new HeaderList(), only: undefined, messages, body: undefined, cancel };
}

function doNothing(): void {
  // There is nothing to stop: the message is known.
}

/** Makes the response to a request. @param id JSON text @param parts of the JSON text of the result */
export function responseTo(id: string, ...parts: readonly (string | Buffer)[]): Message {
  const head = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`);
  const body = parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
  const bytes = Buffer.concat([head, ...body, Buffer.from("}")]);
  const payload = { start: head.length, end: bytes.length - 1 };
  return { bytes, kind: "result", id, method: undefined, whole: { start: 0, end: bytes.length }, payload };
}

/** Makes a notification. @param params JSON text of an object */
export function notificationOf(method: string, params?: string): Message {
  const head = `{"jsonrpc":"2.0","method":"${method}"`;
  const bytes = Buffer.from(params === undefined ? `${head}}` : `${head},"params":${params}}`);
  const start = head.length + ',"params":'.length;
  const payload = params === undefined ? undefined : { start, end: bytes.length - 1 };
  return { bytes, kind: "notification", id: undefined, method, whole: { start: 0, end: bytes.length }, payload };
}

/** Makes the response of an error. */
export function errorTo({ message: { id } }: { readonly message: Message }, error: McpError): Message {
  return errorOf(printError(error, id), id);
}

/** Makes the response to a request of the error that a target gave without its id. @param error JSON text */
export function refusalTo({ id = "null" }: Message, error: string): Message {
  return errorOf(Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${error}}`), id);
}

function errorOf(bytes: Buffer, id: string | undefined): Message {
  const whole = wholeOf(bytes);
  return { bytes, kind: "error", id, method: undefined, whole, payload: findMember(bytes, whole, "error") };
}
