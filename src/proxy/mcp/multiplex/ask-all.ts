/** Answers requests that concern the whole server and have no result: `ping` and `logging/setLevel`. */
import type { McpAnswer } from "../targets/target.ts";
import { responseTo } from "./answers.ts";
import { fanOut } from "./fan-out.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { sendTo, viewInterim, viewOf, type Server } from "./server.ts";
import { askOne } from "./view-answer.ts";

/** Sends a request to all targets; those that do not serve it have nothing to say. @throws McpError, ProxyError */
export async function askAll(server: Server, request: ClientRequest): Promise<McpAnswer> {
  const { naming, failOpen, down } = server;
  const { message, session } = request;
  if (naming.only !== undefined) return askOne(server, request, message, naming.only);
  const view = viewOf(server, request);
  return fanOut(
    naming.targets.map((target) => ({ target, message })),
    {
      failOpen,
      debug: request.exchange.debug,
      down,
      send: (out) => sendTo(out.target, out.message, request),
      view: (interim, target) => viewInterim(server, interim, target, { view, session }),
      merge: () => responseTo(message.id ?? "null", "{}"),
    },
  );
}
