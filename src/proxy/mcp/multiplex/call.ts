/**
 * Calls the target that owns the item of a request: a tool, a prompt, a resource or a task. An item that the caller may
 * not use, and one that no target has, are answered alike.
 */
import { guardAnswer } from "../guardrails/guard-answer.ts";
import type { GuardedTargets } from "../guardrails/guarded-request.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { readMessage, type Message } from "../message/message.ts";
import type { ItemKind } from "../methods.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { isAbsentResource, mayMeanAbsent } from "./absence.ts";
import { answerWith } from "./answers.ts";
import { isUnserved } from "./fan-out.ts";
import { readItem, renameItem, unknownItem, type NamedItem } from "./rewriting/items.ts";
import type { NameQuery } from "./listed-names.ts";
import type { ClientRequest } from "./multiplexer.ts";
import type { OwnedName } from "./naming/names.ts";
import { viewResponse } from "./rewriting/results.ts";
import { metaOf, sendTo, viewOf, type Server } from "./server.ts";
import { parseUri } from "./naming/uris.ts";
import { viewAnswer } from "./view-answer.ts";
import type { View } from "./naming/view.ts";

/** A call on its way. */
interface Call {
  readonly server: Server;
  readonly request: ClientRequest;
  readonly view: View<Target>;
  readonly item: NamedItem;
  readonly owner: OwnedName<Target>;
}

/** Lists in which an item stands when it exists. Resources need not be listed, and ids of tasks are not known by list. */
const LIST_OF: Readonly<Partial<Record<ItemKind, string>>> = { tool: "tools/list", prompt: "prompts/list" };

/** @throws McpError, ProxyError */
export async function callOwner(server: Server, request: ClientRequest): Promise<McpAnswer> {
  const { message, method, session, version, isModern } = request;
  const view = viewOf(server, request);
  const item = readItem(message, method.item, method.named);
  const found = await findOwner(server, request, view, item);
  if (found === undefined) throw unknownItem(item, version, isModern);
  const { out, owner } = await checkCall(request, item, found);
  const { target, name } = owner;
  if (view.allows?.(item.kind, target.name, name) === false) throw unknownItem(item, version, isModern);
  if (view.allows !== undefined && SUBSCRIPTIONS.has(method.name) && (await isAbsentResource(request, owner)))
    throw unknownItem(item, version, isModern);
  const done = server.owners.begin(session, message.id ?? "", target);
  const call = { server, request, view, item, owner };
  try {
    const answer = await sendTo(target, out, request, method.named.length > 0 ? name : undefined);
    const present = view.allows === undefined ? answer : await settleAbsence(call, answer);
    const settled = await checkAnswer(call, present);
    const see = (response: Message): Message => viewResponse(response, method.name, target, view);
    return viewAnswer(settled, { server, request, view, target, viewResponse: see, done });
  } catch (error) {
    done();
    throw error;
  }
}

/** Servers accept these for resources that they do not have. */
const SUBSCRIPTIONS: ReadonlySet<string> = new Set(["resources/subscribe", "resources/unsubscribe"]);

/** A request as its target shall read it. */
interface OutgoingCall {
  readonly out: Message;
  readonly owner: OwnedName<Target>;
}

/**
 * Lets guardrails check and change a call before it is authorized: a name that they write is then authorized too.
 * @throws McpError when they reject it, or the changed params name no item
 */
async function checkCall(
  { message, method, guarded }: ClientRequest,
  item: NamedItem,
  owner: OwnedName<Target>,
): Promise<OutgoingCall> {
  const out = renameItem(message, item, owner.name);
  if (guarded === undefined) return { out, owner };
  const checked = await guarded.checkRequest(out, aboutItem(item, owner));
  if (checked === out) return { out, owner };
  return { out: checked, owner: { ...owner, name: readItem(checked, method.item, method.named).name } };
}

/** Lets guardrails check and change the result while its names are those of the target. */
async function checkAnswer({ request: { guarded }, item, owner }: Call, answer: McpAnswer): Promise<McpAnswer> {
  return guarded === undefined ? answer : guardAnswer(answer, guarded, aboutItem(item, owner));
}

function aboutItem({ kind }: NamedItem, { target, name }: OwnedName<Target>): GuardedTargets {
  return { targets: [target.name], item: { kind, target: target.name, name } };
}

/** @throws McpError when several targets serve a name that does not tell its target */
async function findOwner(
  server: Server,
  request: ClientRequest,
  { allows }: View,
  { kind, name }: NamedItem,
): Promise<OwnedName<Target> | undefined> {
  const { naming } = server;
  if (kind === "resource" || kind === "template") return parseUri(naming, name);
  if (kind === "task") return naming.parseId(name);
  if (naming.prefixesNames || naming.only !== undefined) return naming.parseName(name);
  const query = queryOf(server, request, kind);
  const found: Target[] = [];
  for (const [target, isListed] of await Promise.all(
    naming.targets.map(async (target) => [target, await server.names.has(target, name, query)] as const),
  ))
    if (isListed && allows?.(kind, target.name, name) !== false) found.push(target);
  const [target, second] = found;
  if (second !== undefined) throw new McpError(ERROR_CODES.invalidParams, `Ambiguous ${kind}: ${name}`);
  return target && { target, name };
}

function queryOf(server: Server, request: ClientRequest, kind: ItemKind): NameQuery {
  return {
    session: request.session,
    method: LIST_OF[kind] ?? "",
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

/**
 * Where rules are configured, waits for the first message: a target that refuses a name that it does not know would
 * otherwise answer in its own words, and clients could tell hidden items from those that do not exist.
 * @throws McpError when the item does not exist
 */
async function settleAbsence(call: Call, answer: McpAnswer): Promise<McpAnswer> {
  if (answer.body !== undefined) {
    const message = readMessage(answer.body);
    if ("kind" in message) await refuseAbsent(call, message);
    return answer;
  }
  if (answer.only !== undefined) {
    await refuseAbsent(call, answer.only);
    return answer;
  }
  const iterator = iterate(answer.messages);
  const { done, value: first } = await iterator.next();
  if (done === true) return answer;
  if (first.kind === "result" || first.kind === "error") {
    await refuseAbsent(call, first);
    return answerWith(first);
  }
  return { ...answer, messages: resume(first, iterator) };
}

async function* iterate(messages: McpAnswer["messages"]): AsyncGenerator<Message> {
  yield* messages;
}

async function* resume(first: Message, rest: AsyncGenerator<Message>): AsyncGenerator<Message> {
  yield first;
  yield* rest;
}

/** @throws McpError when the response says that the item does not exist */
async function refuseAbsent({ server, request, item, owner }: Call, response: Message): Promise<void> {
  if (!mayMeanAbsent(response, item.kind)) return;
  const method = LIST_OF[item.kind];
  const isListed =
    method !== undefined && (await server.names.has(owner.target, owner.name, queryOf(server, request, item.kind)));
  if (!isListed) throw unknownItem(item, request.version, request.isModern);
}
