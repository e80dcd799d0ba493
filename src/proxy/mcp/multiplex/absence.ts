/**
 * Answers for items that no target has as for those that rules hide. Where rules are configured, clients could otherwise
 * tell the two apart by the words of the target: hidden items are refused here, and reach no target.
 *
 * Servers refuse what they do not have in many ways: with errors of several codes, with results, after messages to the
 * log, and completions for anything. So a refusal is believed only where another request shows that the item exists.
 *
 * The answers are equal, the times are not: an absent item costs a round trip to its target, a hidden one none. To take
 * the same way, either refused calls would have to reach a target, or whatever no list shows would have to be refused
 * here, resources of templates included.
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import { nextOwnId } from "../message/own-id.ts";
import { findMember, textOf } from "../message/spans.ts";
import type { ItemKind } from "../methods.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { answerWith } from "./answers.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { queryOf } from "./name-query.ts";
import type { OwnedName } from "./naming/names.ts";
import { unknownItem, type NamedItem } from "./rewriting/items.ts";
import { metaOf, sendTo, type Server } from "./server.ts";

/** A call that a target has answered. */
export interface AnsweredCall {
  readonly server: Server;
  readonly request: ClientRequest;
  readonly item: NamedItem;
  readonly owner: OwnedName<Target>;
}

const COMPLETION = "completion/complete";
const READ = "resources/read";
const GET_TASK = "tasks/get";

/** Statuses that are about the client or the load of the server, and not about the item. */
const UNRELATED_STATUSES: ReadonlySet<number> = new Set([401, 403, 429, 503]);

/** Messages that are held back until the response tells whether the item exists; a target that sends more has it. */
const MAX_HELD = 16;

/**
 * Reads an answer as far as it takes to know that the item exists.
 * @returns the answer, to be read in place of the one given
 * @throws McpError when the item does not exist
 */
export async function refuseAbsent(call: AnsweredCall, answer: McpAnswer): Promise<McpAnswer> {
  try {
    if (answer.only !== undefined) await checkResponse(call, answer.only);
    const refusal = answer.body === undefined ? undefined : readMessage(answer.body);
    if (refusal !== undefined && "kind" in refusal && !UNRELATED_STATUSES.has(answer.status))
      await checkResponse(call, refusal);
    return (answer.only ?? answer.body) ? answer : await checkStream(call, answer);
  } catch (error) {
    answer.cancel();
    throw error;
  }
}

/** What a target says before its response passes at once where the item exists. */
async function checkStream(call: AnsweredCall, answer: McpAnswer): Promise<McpAnswer> {
  const messages = iterate(answer.messages);
  const held: Message[] = [];
  for (let next = await messages.next(); next.done !== true; next = await messages.next()) {
    const message = next.value;
    if (message.kind === "result" || message.kind === "error") {
      await checkResponse(call, message);
      if (held.length === 0) return answerWith(message);
    }
    held.push(message);
    // A question to the client must not wait for the response that depends on its answer.
    const isReleased = message.kind !== "notification" || held.length === MAX_HELD;
    if (isReleased || (held.length === 1 && (await exists(call)))) break;
  }
  return { ...answer, messages: resume(held, messages) };
}

async function* iterate(messages: McpAnswer["messages"]): AsyncGenerator<Message> {
  yield* messages;
}

async function* resume(held: readonly Message[], rest: AsyncGenerator<Message>): AsyncGenerator<Message> {
  yield* held;
  yield* rest;
}

/** @throws McpError when the response is that of an item that does not exist */
async function checkResponse(call: AnsweredCall, response: Message): Promise<void> {
  const { request, item } = call;
  if (mayMeanAbsent(response, request.method.name) && !(await exists(call)))
    throw unknownItem(item, request.version, request.isModern);
}

function mayMeanAbsent({ kind, bytes, payload }: Message, method: string): boolean {
  const read = (name: string): string | undefined => {
    const found = payload && findMember(bytes, payload, name);
    return found && textOf(bytes, found);
  };
  if (kind === "error") return read("code") !== String(ERROR_CODES.urlElicitationRequired);
  // Some servers complete by the argument alone.
  if (method === COMPLETION) return true;
  if (method === READ) return /^\[\s*\]$/.test(read("contents") ?? "");
  return method === "tools/call" && read("isError") === "true";
}

/** Resources of templates stand in no list: one that cannot be used does not exist. */
async function exists({ server, request, item: { kind }, owner }: AnsweredCall): Promise<boolean> {
  const method = request.method.name;
  // Lists of tasks are optional.
  if (kind === "task") return method !== GET_TASK && isServed(request, owner, { method: GET_TASK, member: "taskId" });
  const kinds: readonly ItemKind[] = kind === "resource" && method === COMPLETION ? ["template", kind] : [kind];
  for (const each of kinds)
    if (await server.names.has(owner.target, owner.name, queryOf(server, request, each))) return true;
  return false;
}

/**
 * Whether a target neither lists nor serves a resource that a client wants to be told of: servers accept subscriptions to
 * resources that they do not have.
 * @throws McpError, ProxyError
 */
export async function isAbsentResource(
  server: Server,
  request: ClientRequest,
  owner: OwnedName<Target>,
): Promise<boolean> {
  if (await isServed(request, owner, { method: READ, member: "uri" })) return false;
  return !(await server.names.has(owner.target, owner.name, queryOf(server, request, "resource")));
}

/** Asks a target for an item. @throws McpError, ProxyError */
async function isServed(
  request: ClientRequest,
  { target, name }: OwnedName<Target>,
  { method, member }: { readonly method: string; readonly member: string },
): Promise<boolean> {
  const meta = metaOf(request);
  const members = [`"${member}":${JSON.stringify(name)}`, ...(meta === undefined ? [] : [`"_meta":${meta}`])];
  const text = `{"jsonrpc":"2.0","id":${nextOwnId("resolve")},"method":"${method}","params":{${members.join(",")}}}`;
  const read = readMessage(Buffer.from(text));
  if ("code" in read) throw new McpError(ERROR_CODES.internal, "internal error", { detail: read.reason });
  const answer = await sendTo(target, read, request, name);
  let response = answer.body && readMessage(answer.body);
  for await (const message of answer.messages)
    if (message.kind === "result" || message.kind === "error") response = message;
  return response === undefined || !("kind" in response) || !mayMeanAbsent(response, method);
}
