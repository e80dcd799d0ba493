/**
 * Merges a desired status into the stored one. `patches.ts` uses it. A timestamp changes only when its condition
 * changes status (metav1.Condition); entries and condition types of other controllers stay unchanged. The functions are
 * pure. The limits of the lists are those of the Gateway API (PolicyStatus: at most 16 ancestors).
 */
import { Condition as ConditionType, Reason } from "../api/conditions.ts";
import type { DesiredCondition, DesiredEntry } from "./desired.ts";
import { compare } from "../lib/compare.ts";

export interface Condition extends DesiredCondition {
  readonly lastTransitionTime: string;
}

export interface StatusEntry {
  readonly ref: Readonly<Record<string, string | number>>;
  readonly controllerName: string;
  readonly conditions: readonly Condition[];
}

/** The API server rejects a longer message, and with it the whole status. */
const MAX_MESSAGE_LENGTH = 32_768;

const DEFAULT_REF = { group: "gateway.networking.k8s.io", kind: "Gateway" } as const;

/** Reference of the entry that summarizes the entries beyond the limit, and reports targets without a Gateway. */
const SUMMARY_REF = { group: "gwproxy.dev", kind: "Gateway", name: "StatusSummary" } as const;

/** @param now time in RFC 3339, with a precision of seconds */
export function mergeConditions(
  desired: readonly DesiredCondition[],
  current: readonly Condition[],
  now: string,
): Condition[] {
  const merged = desired.map((condition) => {
    const known = current.find(({ type }) => type === condition.type);
    const isSame = known?.status === condition.status;
    return {
      type: condition.type,
      status: condition.status,
      reason: condition.reason,
      message: cut(condition.message),
      observedGeneration: condition.observedGeneration,
      lastTransitionTime: isSame ? known.lastTransitionTime : now,
    };
  });
  return merged.sort((a, b) => compare(a.type, b.type));
}

export interface MergeOptions {
  readonly controllerName: string;
  /** Maximum number of entries in the list. */
  readonly limit: number;
  readonly now: string;
}

/**
 * Returns the entries of other controllers in their order, then the controller's own, sorted by reference. When the
 * list has no room for all own entries, the last one says how many are left out.
 */
export function mergeEntries(
  desired: readonly DesiredEntry[],
  current: readonly StatusEntry[],
  { controllerName, limit, now }: MergeOptions,
): StatusEntry[] {
  const foreign = current.filter((entry) => entry.controllerName !== controllerName);
  const before = new Map(
    current.filter((entry) => entry.controllerName === controllerName).map((entry) => [refKey(entry.ref), entry]),
  );
  const sorted = desired
    .map((entry) => ({ ...entry, ref: completeRef(entry.ref) }))
    .sort((a, b) => compare(refKey(a.ref), refKey(b.ref)));
  const own = fit(sorted, Math.max(0, limit - foreign.length));
  return [
    ...foreign,
    ...own.map(({ ref, conditions }) => ({
      ref,
      controllerName,
      conditions: mergeConditions(conditions, before.get(refKey(ref))?.conditions ?? [], now),
    })),
  ];
}

/** Cuts the entries to the available room; the last one then says how many are left out. */
function fit(entries: readonly DesiredEntry[], room: number): readonly DesiredEntry[] {
  if (entries.length <= room) return entries;
  if (room === 0) return [];
  const isSummary = ({ ref }: DesiredEntry): boolean => refKey(ref) === refKey(SUMMARY_REF);
  const others = entries.filter((entry) => !isSummary(entry));
  const kept = others.slice(0, room - 1);
  const leftOut = others.length - kept.length;
  const summarized: DesiredCondition = {
    type: ConditionType.StatusSummarized,
    status: "True",
    reason: Reason.StatusSummary,
    message: `${leftOut} more ${leftOut === 1 ? "entry is" : "entries are"} left out, the list is full`,
    observedGeneration: Math.max(
      0,
      ...entries.flatMap((entry) => entry.conditions.map((one) => one.observedGeneration)),
    ),
  };
  const summary = entries.find(isSummary);
  return [...kept, { ref: SUMMARY_REF, conditions: [...(summary?.conditions ?? []), summarized] }];
}

/**
 * Adds the defaults that the API server fills in; without them a desired reference would never equal the stored one.
 */
export function completeRef(ref: StatusEntry["ref"]): StatusEntry["ref"] {
  return { ...DEFAULT_REF, ...ref };
}

function refKey(ref: StatusEntry["ref"]): string {
  const full = completeRef(ref);
  return ["group", "kind", "namespace", "name", "sectionName", "port"].map((member) => full[member] ?? "").join("/");
}

/**
 * Half of a surrogate pair, which a cut leaves, is stored as another character. The stored message would then never be the
 * desired one, and be written again and again.
 */
function cut(message: string): string {
  const text = message.length <= MAX_MESSAGE_LENGTH ? message : `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
  return text.toWellFormed();
}
