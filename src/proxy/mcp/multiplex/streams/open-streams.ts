/**
 * Streams that clients hold open on a backend in one place. A change of the backend makes a new virtual server; streams
 * of the former one adopt it, so that clients hear of targets that came or went without asking again.
 */
import { notificationOf } from "../answers.ts";
import type { Message } from "../../message/message.ts";
import type { NamedTarget, Naming } from "../naming/names.ts";

export interface OpenStream<S> {
  /** Goes on with the targets of another server. */
  adopt(server: S): void;
}

/** @typeParam S the virtual server */
export class OpenStreams<S> {
  readonly #streams = new Set<OpenStream<S>>();

  add(stream: OpenStream<S>): void {
    this.#streams.add(stream);
  }

  remove(stream: OpenStream<S>): void {
    this.#streams.delete(stream);
  }

  adopt(server: S): void {
    for (const stream of this.#streams) stream.adopt(server);
  }
}

/** Lists that change with the targets, with the flag that asks for the notification (2026-07-28). */
export const LIST_CHANGES = [
  { flag: "toolsListChanged", method: "notifications/tools/list_changed" },
  { flag: "promptsListChanged", method: "notifications/prompts/list_changed" },
  { flag: "resourcesListChanged", method: "notifications/resources/list_changed" },
] as const;

/** Makes the notifications of a change of targets. */
export function listChanges(): Message[] {
  return LIST_CHANGES.map(({ method }) => notificationOf(method));
}

/** What a change of targets means for a stream. */
export interface RosterChange {
  readonly gone: readonly string[];
  readonly came: readonly string[];
}

/** @returns undefined when the names of the targets are the same */
export function compareRosters(before: Naming<NamedTarget>, after: Naming<NamedTarget>): RosterChange | undefined {
  const gone = before.targets.map(({ name }) => name).filter((name) => after.find(name) === undefined);
  const came = after.targets.map(({ name }) => name).filter((name) => before.find(name) === undefined);
  return gone.length + came.length === 0 ? undefined : { gone, came };
}
