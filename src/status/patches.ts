/**
 * Decides whether the status of an object has to be written, and how. `writer.ts` uses it. In: the desired status and
 * the stored object. Out: the body of one write, or undefined when the stored status is already right. The decision is
 * pure.
 */
import type { KubeObject } from "../api/object.ts";
import { deepEqual } from "../lib/deep-equal.ts";
import { SourceError } from "../lib/errors.ts";
import type { DesiredStatus } from "./desired.ts";
import { completeRef, mergeConditions, mergeEntries, type Condition, type StatusEntry } from "./merge.ts";

export type StatusWrite =
  /** Server-side apply: contains only the fields of the controller's field manager. */
  | { readonly form: "apply"; readonly status: Readonly<Record<string, unknown>> }
  /** Replaces one atomic list, if the object still has this version. */
  | { readonly form: "replace"; readonly resourceVersion: string; readonly status: Readonly<Record<string, unknown>> };

/** Maximum number of entries in `parents` and `ancestors` (Gateway API). */
const LIMITS = { parents: 32, ancestors: 16 } as const;

/** Condition types that the controller sets in keyed statuses. One of these that is no longer desired is removed. */
const OWN_TYPES: ReadonlySet<string> = new Set([
  "Accepted",
  "Programmed",
  "ResolvedRefs",
  "InsecureFrontendValidationMode",
]);

type Keyed = Extract<DesiredStatus, { form: "keyed" }>;
type Listed = Extract<DesiredStatus, { form: "listed" }>;

/**
 * @returns undefined when nothing has to be written
 * @throws SourceError when the object carries no resourceVersion
 */
export function statusWrite(desired: DesiredStatus, current: KubeObject, now: Date): StatusWrite | undefined {
  // Kubernetes timestamps have no fractions of a second; a generated one must equal the stored one.
  const time = `${now.toISOString().slice(0, 19)}Z`;
  const status = statusOf(current);
  return desired.form === "keyed" ? applied(desired, status, time) : replaced(desired, status, current, time);
}

function replaced(desired: Listed, status: Status, current: KubeObject, now: string): StatusWrite | undefined {
  const { controllerName, list } = desired;
  const refName = list === "parents" ? "parentRef" : "ancestorRef";
  const stored = arrayOf(status[list]).map((raw) => entryOf(raw, refName));
  const merged = mergeEntries(desired.entries, stored, { controllerName, limit: desired.limit ?? LIMITS[list], now });
  const isOwn = (entry: StatusEntry): boolean => entry.controllerName === controllerName;
  // The position among entries of other controllers is ignored: two writers would otherwise move each other's entries
  // forever.
  if (deepEqual(stored.filter(isOwn).map(comparable), merged.filter(isOwn).map(comparable))) return undefined;
  const raw = arrayOf(status[list]).filter((_, at) => stored[at] !== undefined && !isOwn(stored[at]));
  const own = merged.filter(isOwn).map(({ ref, conditions }) => ({ [refName]: ref, controllerName, conditions }));
  const { resourceVersion } = current.metadata;
  // Without a version the server would overwrite every change made since the read.
  if (resourceVersion === undefined) throw new SourceError("an object without a version cannot be written safely");
  return {
    form: "replace",
    resourceVersion,
    // Entries of other controllers are written back raw, including fields that this version does not know.
    status: { [list]: [...raw, ...own] },
  };
}

function applied(desired: Keyed, status: Status, now: string): StatusWrite | undefined {
  const stored = conditionsOf(status["conditions"]);
  const conditions = mergeConditions(desired.conditions, stored, now);
  const storedListeners = arrayOf(status["listeners"]).map((raw) => asRecord(raw));
  const listeners = desired.listeners?.map(({ name, attachedRoutes, supportedKinds, conditions }) => {
    const known = storedListeners.find((listener) => listener["name"] === name);
    return {
      name,
      attachedRoutes,
      supportedKinds: supportedKinds.map(({ group, kind }) => ({ group, kind })),
      conditions: mergeConditions(conditions, conditionsOf(known?.["conditions"]), now),
    };
  });
  const wanted = {
    conditions,
    ...(listeners === undefined ? {} : { listeners }),
    ...countOf(desired.attachedListenerSets),
    ...(desired.supportedFeatures === undefined
      ? {}
      : { supportedFeatures: desired.supportedFeatures.map((name) => ({ name })) }),
    ...(desired.addresses === undefined
      ? {}
      : { addresses: desired.addresses.map(({ type, value }) => ({ type, value })) }),
  };
  const isOurs = ({ type }: Condition): boolean => OWN_TYPES.has(type) || conditions.some((own) => own.type === type);
  const present = {
    conditions: byKey(stored.filter(isOurs), "type"),
    ...(listeners === undefined ? {} : { listeners: byKey(storedListeners.map(comparableListener), "name") }),
    ...(desired.attachedListenerSets === undefined ? {} : countOf(status["attachedListenerSets"])),
    ...(desired.supportedFeatures === undefined ? {} : { supportedFeatures: arrayOf(status["supportedFeatures"]) }),
    ...(desired.addresses === undefined ? {} : { addresses: arrayOf(status["addresses"]) }),
  };
  const expected = { ...wanted, ...(listeners === undefined ? {} : { listeners: byKey(listeners, "name") }) };
  return deepEqual(present, expected) ? undefined : { form: "apply", status: wanted };
}

function countOf(attachedListenerSets: unknown): { attachedListenerSets?: unknown } {
  return attachedListenerSets === undefined ? {} : { attachedListenerSets };
}

type Status = Readonly<Record<string, unknown>>;

function statusOf(object: KubeObject): Status {
  return asRecord((object as { status?: unknown }).status); // kinds add their status to KubeObject
}

/** Treats a value of another shape as empty, because several controllers write statuses. */
function asRecord(value: unknown): Status {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Status) : {};
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function conditionsOf(value: unknown): Condition[] {
  return arrayOf(value).map((raw) => asRecord(raw) as unknown as Condition); // the API server validated its shape
}

function entryOf(raw: unknown, refName: string): StatusEntry {
  const entry = asRecord(raw);
  return {
    ref: asRecord(entry[refName]) as StatusEntry["ref"], // references hold strings and a port number
    controllerName: String(entry["controllerName"]),
    conditions: conditionsOf(entry["conditions"]),
  };
}

function comparable({ ref, conditions }: StatusEntry): unknown {
  return { ref: completeRef(ref), conditions: byKey(conditions, "type") };
}

function comparableListener(listener: Status): Status {
  const { name, attachedRoutes, supportedKinds, conditions } = listener;
  return {
    name,
    attachedRoutes,
    supportedKinds: arrayOf(supportedKinds),
    conditions: byKey(conditionsOf(conditions), "type"),
  };
}

/** Sorts a list with a key, so that lists in a different order compare as equal. */
function byKey<T>(list: readonly T[], key: keyof T & string): T[] {
  return list.toSorted((a, b) => (String(a[key]) < String(b[key]) ? -1 : 1));
}
