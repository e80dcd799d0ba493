/**
 * Rewrites the results of calls that one target has answered: URIs of resources and ids of tasks become those that
 * clients see, and members that belong to other versions of the protocol go. Results of lists are in `lists.ts`. All
 * other bytes stay as the target wrote them.
 */
import { eachElement, eachMember, isNamed, readString, type Span } from "../../message/spans.ts";
import { insertMember, removeMembers, setMember, type Edit } from "../../message/splice.ts";
import type { Message } from "../../message/message.ts";
import { editMessage, editString, eachNamed } from "./edit-message.ts";
import type { NamedTarget } from "../naming/names.ts";
import { printUri } from "../naming/uris.ts";
import type { View } from "../naming/view.ts";

type EditResult = (bytes: Buffer, result: Span, target: NamedTarget, view: View) => Edit[];

/** What changes in the result of a method; a method that is not here has nothing to change. */
const RESULTS: ReadonlyMap<string, EditResult> = new Map<string, EditResult>([
  ["tools/call", editCallResult],
  ["tasks/result", editCallResult],
  ["tasks/get", editTaskResult],
  ["tasks/cancel", editTaskId],
  ["prompts/get", editPrompt],
  ["resources/read", editContents],
]);

/** Results that say how long they may be cached (2026-07-28); lists are the others. */
const CACHEABLE: ReadonlySet<string> = new Set(["resources/read", "server/discover"]);

/** Members of results that only 2026-07-28 knows. */
const MODERN_MEMBERS = ["resultType", "ttlMs", "cacheScope"] as const;

/** Rewrites the response of a target to a request. @param method of the request */
export function viewResponse(message: Message, method: string, target: NamedTarget, view: View): Message {
  const { bytes, kind, payload } = message;
  if (kind !== "result" || payload === undefined) return message;
  const edits = RESULTS.get(method)?.(bytes, payload, target, view) ?? [];
  edits.push(...editRelatedTask(bytes, payload, view.naming.idPrefix(target)));
  edits.push(...editVersionMembers(bytes, payload, CACHEABLE.has(method), view.isModern));
  return editMessage(message, edits);
}

/**
 * Clients of sessions never see what only 2026-07-28 has. Its clients always get the type of a result, and no result may
 * be cached: two callers may see different items, and a list changes with the targets.
 */
export function editVersionMembers(bytes: Buffer, result: Span, isCacheable: boolean, isModern: boolean): Edit[] {
  if (!isModern) return mayHold(bytes, ...MODERN_MEMBERS) ? removeMembers(bytes, result, ...MODERN_MEMBERS) : [];
  const [type, ttl, scope] = MODERN_MEMBERS;
  const hasType = !eachNamed(bytes, result, type).next().done;
  const missing = hasType ? [] : [`"${type}":"complete"`];
  const edits: Edit[] = [];
  for (const [name, text] of isCacheable ? [[ttl, "0"] as const, [scope, '"private"'] as const] : []) {
    if (eachNamed(bytes, result, name).next().done) missing.push(`"${name}":${text}`);
    else edits.push(...setMember(bytes, result, name, text));
  }
  return missing.length === 0 ? edits : [insertMembers(bytes, result, missing), ...edits];
}

/** Returns the one edit for several new members: two insertions at one place would have no order. */
function insertMembers(bytes: Buffer, object: Span, [first = "", ...others]: readonly string[]): Edit {
  const colon = first.indexOf(":");
  const inserted = insertMember(bytes, object, first.slice(1, colon - 1), first.slice(colon + 1));
  return { ...inserted, text: [...others, inserted.text].join(",") };
}

/** A tool's result, or the task that stands for it (2025-11-25: inside of `task`, 2026-07-28: the result itself). */
function editCallResult(bytes: Buffer, result: Span, target: NamedTarget, view: View): Edit[] {
  const edits = editTaskId(bytes, result, target, view);
  for (const task of eachNamed(bytes, result, "task")) edits.push(...editTaskId(bytes, task, target, view));
  for (const content of eachNamed(bytes, result, "content")) edits.push(...editContent(bytes, content, target));
  return edits;
}

/** Returns the edits of a task; in 2026-07-28 it holds the result that it led to. */
export function editTaskResult(bytes: Buffer, task: Span, target: NamedTarget, view: View): Edit[] {
  const edits = editTaskId(bytes, task, target, view);
  for (const result of eachNamed(bytes, task, "result")) edits.push(...editCallResult(bytes, result, target, view));
  return edits;
}

function editPrompt(bytes: Buffer, result: Span, target: NamedTarget): Edit[] {
  const edits: Edit[] = [];
  if (!mayHold(bytes, "resource")) return edits;
  for (const messages of eachNamed(bytes, result, "messages"))
    for (const message of eachElement(bytes, messages))
      for (const content of eachNamed(bytes, message, "content")) edits.push(...editContent(bytes, content, target));
  return edits;
}

function editContents(bytes: Buffer, result: Span, target: NamedTarget): Edit[] {
  const edits: Edit[] = [];
  for (const contents of eachNamed(bytes, result, "contents"))
    for (const item of eachElement(bytes, contents)) edits.push(...editUri(bytes, item, target));
  return edits;
}

/** One block of content, or a list of them. Links to resources and embedded resources have URIs. */
function editContent(bytes: Buffer, content: Span, target: NamedTarget): Edit[] {
  const edits: Edit[] = [];
  if (!mayHold(bytes, "resource")) return edits;
  const blocks = bytes[content.start] === 0x5b ? eachElement(bytes, content) : [content];
  for (const block of blocks) {
    const type = readType(bytes, block);
    if (type === "resource_link") edits.push(...editUri(bytes, block, target));
    if (type !== "resource") continue;
    for (const resource of eachNamed(bytes, block, "resource")) edits.push(...editUri(bytes, resource, target));
  }
  return edits;
}

function readType(bytes: Buffer, block: Span): string | undefined {
  let type: string | undefined;
  for (const { start, end } of eachNamed(bytes, block, "type")) type = readString(bytes, { start, end });
  return type;
}

/** Returns the edits of the member `uri` of a resource. */
export function editUri(bytes: Buffer, resource: Span, target: NamedTarget): Edit[] {
  return editString(bytes, resource, "uri", (uri) => printUri(target, uri));
}

function editTaskId(bytes: Buffer, task: Span, target: NamedTarget, { naming }: Pick<View, "naming">): Edit[] {
  const prefix = naming.idPrefix(target);
  if (prefix === "" || !mayHold(bytes, "taskId")) return [];
  return editString(bytes, task, "taskId", (id) => prefix + id);
}

/** Messages of a task name it in their `_meta` (2025-11-25). */
const RELATED_TASK = "io.modelcontextprotocol/related-task";

/** Returns the edits that put the prefix in front of the task that a message belongs to. */
export function editRelatedTask(bytes: Buffer, payload: Span, prefix: string): Edit[] {
  return changeRelatedTask(bytes, payload, (id) => prefix + id, prefix !== "");
}

/** Returns the edits that take the prefix off the task that a message of the client belongs to. */
export function editOwnRelatedTask(bytes: Buffer, payload: Span, prefix: string): Edit[] {
  const strip = (id: string): string => (id.startsWith(prefix) ? id.slice(prefix.length) : id);
  return changeRelatedTask(bytes, payload, strip, prefix !== "");
}

function changeRelatedTask(bytes: Buffer, payload: Span, change: (id: string) => string, isNeeded: boolean): Edit[] {
  const edits: Edit[] = [];
  if (!isNeeded || !mayHold(bytes, RELATED_TASK)) return edits;
  for (const meta of eachNamed(bytes, payload, "_meta"))
    for (const related of eachNamed(bytes, meta, RELATED_TASK))
      edits.push(...editString(bytes, related, "taskId", change));
  return edits;
}

const ESCAPE = Buffer.from("\\u");

/**
 * Decides at the speed of a native search whether any of the words can occur in a text: most results hold none, and are
 * not read any further then. A word of ASCII characters can also be spelled with escapes.
 */
export function mayHold(bytes: Buffer, ...words: readonly string[]): boolean {
  return words.some((word) => bytes.includes(word, 0, "latin1")) || bytes.includes(ESCAPE);
}

/** Returns the edits of the metadata of a tool: where its user interface is (MCP Apps). */
export function editUiMeta(bytes: Buffer, tool: Span, target: NamedTarget, { allows }: Pick<View, "allows">): Edit[] {
  const edits: Edit[] = [];
  for (const meta of eachNamed(bytes, tool, "_meta")) {
    edits.push(...editUiUri(bytes, meta, "ui/resourceUri", { target, allows }));
    for (const ui of eachNamed(bytes, meta, "ui"))
      edits.push(...editUiUri(bytes, ui, "resourceUri", { target, allows }));
  }
  return edits;
}

/** The URI is removed where the resource is denied: it would tell that the resource exists. */
function editUiUri(
  bytes: Buffer,
  object: Span,
  name: string,
  { target, allows }: { readonly target: NamedTarget } & Pick<View, "allows">,
): Edit[] {
  const isDenied = (uri: string): boolean => allows !== undefined && !allows("resource", target.name, uri);
  for (const { name: key, value } of eachMember(bytes, object)) {
    if (!isNamed(bytes, { name: key, value }, name)) continue;
    const uri = readString(bytes, value);
    if (uri !== undefined && isDenied(uri)) return removeMembers(bytes, object, name);
  }
  return editString(bytes, object, name, (uri) => printUri(target, uri));
}
