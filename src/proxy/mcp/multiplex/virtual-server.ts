/**
 * The MCP server that clients see in place of the targets of a backend. The handler gives it every message that passed
 * the checks of the client side; it decides which targets get the message, under which names, and makes one answer.
 */
import type { RoutedExchange } from "../../exchange/exchange.ts";
import { guardAnswer } from "../guardrails/guard-answer.ts";
import type { GuardedRequest } from "../guardrails/guarded-request.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { eachMember, isLike, readString } from "../message/spans.ts";
import type { Session } from "../session/session.ts";
import type { McpAnswer } from "../targets/target.ts";
import { askAll } from "./ask-all.ts";
import { callOwner } from "./call.ts";
import { DownTargets } from "./down-targets.ts";
import { discover, initialize } from "./introduce.ts";
import { listItems } from "./list-request.ts";
import { ListedNames } from "./listed-names.ts";
import type { ClientMessage, ClientRequest, Multiplexer } from "./multiplexer.ts";
import { notify } from "./notify.ts";
import { RequestOwners } from "./request-owners.ts";
import type { Server, ServerOptions } from "./server.ts";
import { openServerStream } from "./streams/server-stream.ts";
import { subscribe } from "./streams/subscriptions.ts";

type Answer = (server: Server, request: ClientRequest) => Promise<McpAnswer>;

/** How requests to all targets are answered; all others go to the owner of their item. */
const FAN_OUTS: ReadonlyMap<string, Answer> = new Map<string, Answer>([
  ["initialize", initialize],
  ["server/discover", discover],
  ["ping", askAll],
  ["logging/setLevel", askAll],
  ["tools/list", listItems],
  ["prompts/list", listItems],
  ["resources/list", listItems],
  ["resources/templates/list", listItems],
  ["tasks/list", listItems],
  ["subscriptions/listen", subscribe],
]);

/** Creates the virtual server of a backend; every change of the backend creates a new one. */
export function createVirtualServer(options: ServerOptions): Multiplexer {
  const server: Server = { ...options, names: new ListedNames(), owners: new RequestOwners(), down: new DownTargets() };
  const { naming, failOpen } = options;
  options.streams.adopt(server);
  return {
    async request(request: ClientRequest): Promise<McpAnswer> {
      refuseAmbiguous(request.message);
      if (naming.targets.length === 0 && !failOpen) throw noTargets();
      const guarded = server.guard?.(request);
      const fanOut = FAN_OUTS.get(request.method.name);
      if (fanOut === undefined) return callOwner(server, { ...request, guarded });
      return guarded === undefined ? fanOut(server, request) : askGuarded(server, { ...request, guarded }, fanOut);
    },
    async notify(message: ClientMessage): Promise<void> {
      refuseAmbiguous(message.message);
      await notify(server, message);
    },
    listen: (session: Session, exchange: RoutedExchange) => openServerStream(server, session, exchange),
    async end(session: Session, exchange: RoutedExchange): Promise<void> {
      await Promise.all(naming.targets.map((target) => target.end(session, exchange)));
    },
  };
}

/** A request to all targets is checked once, and so is what clients get of their results. */
async function askGuarded(
  server: Server,
  request: ClientRequest & { readonly guarded: GuardedRequest },
  fanOut: Answer,
): Promise<McpAnswer> {
  const about = { targets: server.naming.targets.map(({ name }) => name), item: undefined };
  await request.guarded.checkRequest(request.message, about);
  return guardAnswer(await fanOut(server, request), request.guarded, about);
}

function noTargets(): McpError {
  return new McpError(ERROR_CODES.internal, "no server is available", { status: 503 });
}

const ENVELOPE = ["id", "method", "params", "result", "error"] as const;

/**
 * Refuses messages that say something twice, or in two spellings. Parsers differ in which of two such members they take,
 * so a target could read another request than the one that was authorized.
 * @throws McpError invalid request
 */
function refuseAmbiguous({ bytes, whole }: Message): void {
  const seen = new Set<string>();
  for (const member of eachMember(bytes, whole)) {
    const text = readString(bytes, member.name);
    const name = ENVELOPE.find((known) => isLike(text, known));
    if (name === undefined) continue;
    if (seen.has(name) || name !== text)
      throw new McpError(ERROR_CODES.invalidRequest, `${name} occurs twice`, { status: 400 });
    seen.add(name);
  }
}
