/** Asks targets for what they list on behalf of a request: who owns a name, and whether an item exists. */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import type { ItemKind } from "../methods.ts";
import type { Target } from "../targets/target.ts";
import { isUnserved } from "./fan-out.ts";
import type { NameQuery } from "./listed-names.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { metaOf, sendTo, type Server } from "./server.ts";

/** Methods of the lists, by the kind of their items. */
const LIST_OF: Readonly<Record<ItemKind, string>> = {
  tool: "tools/list",
  prompt: "prompts/list",
  resource: "resources/list",
  template: "resources/templates/list",
  task: "tasks/list",
};

export function queryOf(server: Server, request: ClientRequest, kind: ItemKind): NameQuery {
  return {
    session: request.session,
    method: LIST_OF[kind],
    meta: metaOf(request),
    ask: (target, page) => askPage(server, request, target, page),
  };
}

/** Asks a target for a page of its names. @returns undefined for a target that fails and is left out then */
async function askPage(
  { failOpen }: Server,
  request: ClientRequest,
  target: Target,
  page: Message,
): Promise<Message | undefined> {
  try {
    const answer = await sendTo(target, page, request);
    for await (const message of answer.messages)
      if (message.kind === "result" || message.kind === "error") return message;
    const refusal = answer.body && readMessage(answer.body);
    // Servers of 2026-07-28 refuse lists that they do not serve with an error status.
    if (refusal !== undefined && "kind" in refusal && isUnserved(refusal)) return refusal;
    throw new McpError(ERROR_CODES.internal, "a server did not list its items", { status: 500 });
  } catch (error) {
    if (failOpen && error instanceof McpError) return undefined;
    throw error;
  }
}
