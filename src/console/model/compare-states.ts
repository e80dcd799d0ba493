/** Compares two snapshots of a request, so that the page shows what a step changed. */
import { isRecord, type TraceEvent } from "./trace.ts";

export interface StateChange {
  /** Such as "request.headers.x-user". */
  readonly path: string;
  /** JSON; undefined where the value was added. */
  readonly before: string | undefined;
  /** JSON; undefined where the value was removed. */
  readonly after: string | undefined;
}

/**
 * Returns the state of the request that an event shows: that of a snapshot, or the one that a policy left. The state of
 * an expression holds only what the expression reads, so it is not compared.
 */
export function snapshotOf(message: TraceEvent["message"]): unknown {
  if (message.type.endsWith("Snapshot")) return message["requestState"];
  const result = message.type === "policy" ? message["result"] : undefined;
  return isRecord(result) ? result["snapshot"] : undefined;
}

/** Snapshots hold what clients sent, so depth and number of differences have bounds. */
const MAX_CHANGES = 200;
const MAX_DEPTH = 12;

export function compareStates(before: unknown, after: unknown): StateChange[] {
  const changes: StateChange[] = [];
  collectChanges({ before, after }, [], changes);
  return changes;
}

function collectChanges(
  pair: { readonly before: unknown; readonly after: unknown },
  path: readonly string[],
  changes: StateChange[],
): void {
  const { before, after } = pair;
  if (changes.length >= MAX_CHANGES) return;
  if (isRecord(before) && isRecord(after) && path.length < MAX_DEPTH) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      collectChanges({ before: before[key], after: after[key] }, [...path, key], changes);
    return;
  }
  const [old, now] = [print(before), print(after)];
  if (old !== now) changes.push({ path: path.join("."), before: old, after: now });
}

function print(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}
