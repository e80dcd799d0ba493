/**
 * Checked files → the objects in force. Decides what a fault costs: a broken file keeps what it said last, a refused
 * object keeps its last accepted version, and a refused GwPolicy is passed on as refused, so that it never opens a route.
 */
import { type KubeObject, type ObjectId, objectKey } from "../../api/object.ts";
import { deepEqual } from "../../lib/deep-equal.ts";
import type { ObjectEvent, SourceProblem } from "../source.ts";
import { type CheckedFile, type CheckedObject, type FileProblem, titleOf } from "./check.ts";

export type Held =
  | { readonly type: "set"; readonly id: ObjectId; readonly object: KubeObject }
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: KubeObject; readonly reason: string };

export type State = ReadonlyMap<string, Held>;

export interface Assembly {
  readonly state: State;
  readonly problems: readonly FileProblem[];
}

/** @param files in order: of two objects with one name the first counts. @param before what was in force until now */
export function assemble(files: readonly CheckedFile[], before: State): Assembly {
  const owners = new Map<string, CheckedObject>();
  const state = new Map<string, Held>();
  const duplicates: FileProblem[] = [];
  for (const checked of files.flatMap(({ objects }) => objects)) {
    const key = objectKey(checked.id);
    const first = owners.get(key);
    if (first !== undefined) {
      duplicates.push(duplicateOf(checked, first));
      continue;
    }
    owners.set(key, checked);
    const held = hold(checked, before.get(key));
    if (held !== undefined) state.set(key, held);
  }
  // What a broken document seems to hold counts only where no readable document says it.
  for (const fragment of files.flatMap(({ fragments }) => fragments)) {
    const key = objectKey(fragment.id);
    if (owners.has(key) || state.has(key)) continue;
    const held = hold(fragment, before.get(key));
    if (held !== undefined) state.set(key, held);
  }
  return { state, problems: [...files.flatMap(({ problems }) => problems), ...duplicates].sort(byPlace) };
}

function hold({ id, object, refusal }: CheckedObject, last: Held | undefined): Held | undefined {
  if (refusal === undefined) return { type: "set", id, object };
  if (id.group === "gwproxy.dev" && id.kind === "GwPolicy") return { type: "refused", id, object, reason: refusal };
  return last?.type === "set" ? last : undefined;
}

function duplicateOf(second: CheckedObject, first: CheckedObject): FileProblem {
  return {
    file: second.file,
    ...second.mark("metadata.name", "value"),
    object: titleOf(second.object),
    groupKind: `${second.id.group}/${second.id.kind}`,
    path: "metadata.name",
    severity: "error",
    reason: "Duplicate",
    message: `defined twice: the one at ${first.file}:${first.line}:${first.column} counts, this one at ${second.file}:${second.line}:${second.column} does not`,
    suggestion: "remove or rename one of them",
  };
}

/** The step from one state to the next: what vanished first, so that a renamed object is never there twice. */
export function eventsBetween(before: State, after: State): ObjectEvent[] {
  const events: ObjectEvent[] = [];
  for (const [key, { id }] of before) if (!after.has(key)) events.push({ type: "delete", id });
  for (const [key, held] of after) {
    const old = before.get(key);
    if (old !== undefined && (old === held || deepEqual(old, held))) continue;
    if (held.type === "set") events.push({ type: "set", object: held.object });
    else events.push(held);
  }
  return events;
}

export function byPlace(a: SourceProblem, b: SourceProblem): number {
  return (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) || a.line - b.line || a.column - b.column;
}
