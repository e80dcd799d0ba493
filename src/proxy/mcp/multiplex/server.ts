/**
 * What the parts of the multiplexer share: the virtual server that they make of the targets of one backend, and the
 * requests in progress. `virtual-server.ts` creates it.
 */
import { messageOf } from "../../../lib/errors.ts";
import type { DebugTrace } from "../../exchange/debug-trace.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { Guard } from "../guardrails/guardrails.ts";
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import type { Message } from "../message/message.ts";
import { findMember, stringAt, textOf } from "../message/spans.ts";
import type { Seal } from "../session/seal.ts";
import type { Session } from "../session/session.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import type { DownTargets } from "./down-targets.ts";
import type { ListedNames } from "./listed-names.ts";
import type { ClientRequest } from "./multiplexer.ts";
import type { Naming } from "./naming/names.ts";
import type { OpenStreams } from "./streams/open-streams.ts";
import type { RequestOwners } from "./request-owners.ts";
import { viewServerMessage } from "./rewriting/server-messages.ts";
import type { Allows, View } from "./naming/view.ts";

export interface ServerOptions {
  /** Key of the backend. */
  readonly backend: string;
  readonly naming: Naming<Target>;
  /** Targets that fail are left out of what several targets answer together. */
  readonly failOpen: boolean;
  /** Each request gets sessions of its own with the targets. */
  readonly stateless: boolean;
  readonly seal: Seal;
  /** Streams of this backend and place that are open, also those that began before its last change. */
  readonly streams: OpenStreams<Server>;
  /** Returns what decides which items the caller may use; undefined when no rule is configured. */
  readonly authorize: (exchange: RoutedExchange) => Allows | undefined;
  /** Returns the services that check a request; undefined when none does. */
  readonly guard: Guard | undefined;
}

export interface Server extends ServerOptions {
  readonly names: ListedNames;
  readonly owners: RequestOwners;
  readonly down: DownTargets;
}

/** Returns what a request may see. */
export function viewOf(
  { naming, authorize }: ServerOptions,
  { exchange, isModern }: Pick<ClientRequest, "exchange" | "isModern">,
): View<Target> {
  return { naming, allows: authorize(exchange), isModern };
}

/** Sends a message to a target on behalf of a request. @param name the target's own name of the item */
export function sendTo(
  target: Target,
  message: Message,
  { version, session, exchange, guarded }: ClientRequest,
  name?: string,
): Promise<McpAnswer> {
  const editHeaders = guarded?.editHeaders.bind(guarded);
  const sent = target.send({ message, version, name, editHeaders }, session, exchange);
  return exchange.debug === undefined ? sent : traced(sent, exchange.debug, { target: target.name, message });
}

async function traced(
  sent: Promise<McpAnswer>,
  debug: DebugTrace,
  { target, message }: { readonly target: string; readonly message: Message },
): Promise<McpAnswer> {
  const startedAtMs = performance.now();
  const asked = { target, method: message.method ?? message.kind };
  try {
    const answer = await sent;
    const details = { ...asked, status: answer.status };
    debug.record({ type: "policyEvent", kind: "Mcp", details }, { startedAtMs, severity: "success" });
    return answer;
  } catch (error) {
    const details = { ...asked, error: messageOf(error) };
    debug.record({ type: "policyEvent", kind: "Mcp", details }, { startedAtMs, severity: "error" });
    throw error;
  }
}

/** Returns the JSON text of `_meta` for requests of our own, which every request of 2026-07-28 has. */
export function metaOf({ message: { bytes, payload }, isModern }: ClientRequest): string | undefined {
  const meta = payload && isModern ? findMember(bytes, payload, "_meta") : undefined;
  return meta && textOf(bytes, meta);
}

const LIST_CHANGED = /^notifications\/(?:tools|prompts|resources)\/list_changed$/;

/**
 * Rewrites what a target says before it responds.
 * @returns undefined for what the client must not get
 * @throws McpError when the target asks something where no answer could reach it
 */
export function viewInterim(
  { names, stateless }: Server,
  message: Message,
  target: Target,
  { view, session }: { readonly view: View; readonly session: Session },
): Message | undefined {
  if (message.method !== undefined && LIST_CHANGED.test(message.method)) names.forget(session, target);
  if (message.kind === "notification")
    return isAboutHidden(message, target, view) ? undefined : viewServerMessage(message, target, view);
  // A response here answers something that was not asked.
  if (message.kind !== "request") return undefined;
  if (!view.isModern && !stateless) return viewServerMessage(message, target, view);
  if (message.method === "ping") return undefined;
  const hint = view.isModern ? "it must answer with an input-required result" : "this server has no sessions";
  throw new McpError(ERROR_CODES.internal, `the server sent a request to the client; ${hint}`, { status: 500 });
}

/** Whether a notification tells of an item that the caller may not see. */
function isAboutHidden({ method, bytes, payload }: Message, target: Target, { allows }: View): boolean {
  if (allows === undefined || payload === undefined) return false;
  const uri = method === "notifications/resources/updated" ? stringAt(bytes, payload, "uri") : undefined;
  const isTask = method === "notifications/tasks/status" || method === "notifications/tasks";
  const task = isTask ? stringAt(bytes, payload, "taskId") : undefined;
  if (uri !== undefined) return !allows("resource", target.name, uri);
  return task !== undefined && !allows("task", target.name, task);
}
