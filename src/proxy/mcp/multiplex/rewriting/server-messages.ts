/**
 * Rewrites what targets send to clients besides responses: notifications, and requests (sampling, elicitation, roots).
 * Requests of several targets may have equal ids and progress tokens, so these carry their target to the client and back
 * (`request-ids.ts`); with one target they stay as they are.
 */
import { textOf, type Span } from "../../message/spans.ts";
import type { Edit } from "../../message/splice.ts";
import type { Message } from "../../message/message.ts";
import { eachNamed, editMessage } from "./edit-message.ts";
import type { NamedTarget } from "../naming/names.ts";
import { printRoutedId } from "../naming/request-ids.ts";
import { editRelatedTask, editTaskResult, editUri, mayHold } from "./results.ts";
import type { View } from "../naming/view.ts";

/** Rewrites a notification or request of a target, as clients see it. */
export function viewServerMessage(message: Message, target: NamedTarget, view: View): Message {
  const { bytes, payload } = message;
  const edits = payload === undefined ? [] : editParams(message, payload, target, view);
  if (payload !== undefined) edits.push(...editRelatedTask(bytes, payload, view.naming.idPrefix(target)));
  if (message.kind !== "request" || message.id === undefined || view.naming.only !== undefined)
    return editMessage(message, edits);
  const id = printRoutedId(target.name, message.id);
  for (const span of eachNamed(bytes, message.whole, "id")) edits.push({ ...span, text: id });
  if (payload !== undefined) edits.push(...editProgressToken(bytes, payload, target));
  return editMessage(message, edits, id);
}

function editParams(message: Message, params: Span, target: NamedTarget, view: View): Edit[] {
  const { bytes } = message;
  switch (message.method) {
    case "notifications/resources/updated":
      return editUri(bytes, params, target);
    case "notifications/tasks/status":
    case "notifications/tasks":
      return editTaskResult(bytes, params, target, view);
    case "notifications/cancelled":
      return view.naming.only === undefined ? editRoutedIds(bytes, params, "requestId", target) : [];
    default:
      return [];
  }
}

/** The client reports progress of a request under the token that the target chose for it. */
function editProgressToken(bytes: Buffer, params: Span, target: NamedTarget): Edit[] {
  const edits: Edit[] = [];
  if (!mayHold(bytes, "progressToken")) return edits;
  for (const meta of eachNamed(bytes, params, "_meta"))
    edits.push(...editRoutedIds(bytes, meta, "progressToken", target));
  return edits;
}

function editRoutedIds(bytes: Buffer, object: Span, name: string, target: NamedTarget): Edit[] {
  return [...eachNamed(bytes, object, name)]
    .map((span) => ({ ...span, text: textOf(bytes, span) }))
    .filter(({ text }) => /^(?:"|-?\d+$)/.test(text))
    .map((span) => ({ ...span, text: printRoutedId(target.name, span.text) }));
}
