/**
 * Passes on what clients send without waiting for a response: notifications, and answers to requests of targets. An
 * answer finds its target by the id that the request was shown with; a cancellation and a report of progress go to the
 * target that they concern where it is known, and everything else goes to all.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { findMember, textOf } from "../message/spans.ts";
import type { Target } from "../targets/target.ts";
import { editMessage } from "./rewriting/edit-message.ts";
import { editAnswer } from "./rewriting/items.ts";
import type { ClientMessage } from "./multiplexer.ts";
import { parseRoutedId } from "./naming/request-ids.ts";
import type { Server } from "./server.ts";

/** A message as one of the targets shall read it. */
interface Delivery {
  readonly target: Target;
  readonly message: Message;
  /** The target may not know what the message is about, and refuse it. */
  readonly isGuess: boolean;
}

/** @throws McpError when a target fails, unless targets that fail are left out; ProxyError */
export async function notify(server: Server, client: ClientMessage): Promise<void> {
  const sent = deliveriesOf(server, client).map((delivery) => deliver(delivery, client));
  const outcomes = await Promise.allSettled(sent);
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure !== undefined && !server.failOpen) throw failure.reason;
}

async function deliver({ target, message, isGuess }: Delivery, { version, session, exchange }: ClientMessage) {
  const answer = await target.send({ message, version, name: undefined }, session, exchange);
  if (answer.body === undefined || isGuess) return;
  const { status } = answer;
  throw new McpError(ERROR_CODES.invalidRequest, "the server refused the message", { status });
}

function deliveriesOf(server: Server, client: ClientMessage): Delivery[] {
  const { message } = client;
  if (message.kind === "result" || message.kind === "error") return routeAnswer(server, message);
  if (message.method === "notifications/cancelled") return routeCancellation(server, client);
  if (message.method === "notifications/progress") return routeProgress(server, client);
  return toAll(server, client, false);
}

/** A target that has no session yet missed nothing: it is entered with its first request. */
function toAll({ naming }: Server, { message, session }: ClientMessage, isGuess: boolean): Delivery[] {
  const entered = naming.targets.filter(({ name }) => naming.only !== undefined || session.target(name).entered);
  return entered.map((target) => ({ target, message, isGuess }));
}

/** An answer that belongs to no request is dropped, unless only one target can have asked. */
function routeAnswer({ naming }: Server, message: Message): Delivery[] {
  if (naming.only !== undefined) {
    const answer = editAnswer(message, message.id, naming.idPrefix(naming.only));
    return [{ target: naming.only, message: answer, isGuess: false }];
  }
  const routed = message.id === undefined ? undefined : parseRoutedId(message.id);
  const target = routed && naming.find(routed.target);
  if (routed === undefined || target === undefined) return [];
  return [{ target, message: editAnswer(message, routed.id, naming.idPrefix(target)), isGuess: false }];
}

function routeCancellation(server: Server, client: ClientMessage): Delivery[] {
  const { message, session } = client;
  const id = readId(message, "requestId");
  const target = id === undefined ? undefined : server.owners.find(session, id);
  return target === undefined ? toAll(server, client, true) : [{ target, message, isGuess: false }];
}

/** The token is the one that the target's request was shown with. */
function routeProgress(server: Server, client: ClientMessage): Delivery[] {
  const { naming } = server;
  const { message } = client;
  const { bytes, payload } = message;
  const span = payload && findMember(bytes, payload, "progressToken");
  const routed = naming.only === undefined && span !== undefined ? parseRoutedId(textOf(bytes, span)) : undefined;
  const target = routed && naming.find(routed.target);
  if (routed === undefined || target === undefined || span === undefined) return toAll(server, client, true);
  return [{ target, message: editMessage(message, [{ ...span, text: routed.id }]), isGuess: false }];
}

/** Returns an id in the params in the form in which ids of messages are compared. */
function readId({ bytes, payload }: Message, name: string): string | undefined {
  const span = payload && findMember(bytes, payload, name);
  if (span === undefined) return undefined;
  const text = textOf(bytes, span);
  return text.startsWith('"') && text.includes("\\") ? JSON.stringify(JSON.parse(text)) : text;
}
