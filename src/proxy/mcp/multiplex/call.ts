/**
 * Calls the target that owns the item of a request: a tool, a prompt, a resource or a task. An item that the caller may
 * not use, and one that no target has, are answered alike.
 */
import { guardAnswer } from "../guardrails/guard-answer.ts";
import type { GuardedTargets } from "../guardrails/guarded-request.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { isAbsentResource, refuseAbsent, type AnsweredCall } from "./absence.ts";
import { readItem, renameItem, unknownItem, type NamedItem } from "./rewriting/items.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { queryOf } from "./name-query.ts";
import type { OwnedName } from "./naming/names.ts";
import { viewResponse } from "./rewriting/results.ts";
import { sendTo, viewOf, type Server } from "./server.ts";
import { parseUri } from "./naming/uris.ts";
import { viewAnswer } from "./view-answer.ts";
import type { View } from "./naming/view.ts";

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
  const isSubscription = SUBSCRIPTIONS.has(method.name);
  if (view.allows !== undefined && isSubscription && (await isAbsentResource(server, request, owner)))
    throw unknownItem(item, version, isModern);
  const done = server.owners.begin(session, message.id ?? "", target);
  const call = { server, request, item, owner };
  try {
    const answer = await sendTo(target, out, request, method.named.length > 0 ? name : undefined);
    const present = view.allows === undefined || isSubscription ? answer : await refuseAbsent(call, answer);
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
async function checkAnswer({ request: { guarded }, item, owner }: AnsweredCall, answer: McpAnswer): Promise<McpAnswer> {
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
