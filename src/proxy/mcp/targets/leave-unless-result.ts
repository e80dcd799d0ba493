/** Undoes an entry into a session that a server refuses; sessions with one target and with several use it. */
import type { Message } from "../message/message.ts";
import type { McpAnswer } from "./target.ts";

/**
 * Passes on the messages of an answer to `initialize`.
 * @param leave called at the end, unless the last message is a result: no stream or session stays behind
 */
export async function* leaveUnlessResult(
  messages: McpAnswer["messages"],
  leave: () => Promise<void> | void,
): AsyncGenerator<Message> {
  let isEntered = false;
  try {
    for await (const message of messages) {
      isEntered = message.kind === "result";
      yield message;
    }
  } finally {
    if (!isEntered) await leave();
  }
}
