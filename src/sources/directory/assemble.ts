/**
 * Turns checked files into the objects that are in force. The directory source and `gwproxy validate` use it.
 *
 * The assembly decides what an error in a file does to traffic. An object that becomes invalid keeps its last accepted
 * version, as it would on an API server, even when its document can no longer be read. A GwPolicy that was never
 * accepted is passed on as refused (fail closed), because leaving it out would open the route that it protects.
 *
 * Each file contributes claims, and each object has an ordered list of claims; the first usable one wins:
 *
 *   document   the document is readable and defines the object
 *   kept       the file defined the object before, and one of its broken documents may still mean it
 *   fragment   a broken document seems to define the object
 *
 * The cost of a changed file depends on the objects that it holds now and held before, not on the number of other
 * files.
 */
import { type KubeObject, type ObjectId, objectKey } from "../../api/object.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { deepEqual } from "../../lib/deep-equal.ts";
import type { ObjectEvent, SourceDiagnostic } from "../source.ts";
import { type CheckedFile, type CheckedObject, type FileDiagnostic, titleOf } from "./check.ts";
import { hasIdentity, type Identity } from "./identity.ts";
import { compare } from "../../lib/compare.ts";

type ActiveObject =
  | { readonly type: "set"; readonly id: ObjectId; readonly object: KubeObject }
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: KubeObject; readonly reason: string };

/** One definition of an object in one file. */
interface Candidate {
  readonly object: CheckedObject;
  /** Position within the file. Kept objects and fragments come after all readable documents. */
  readonly at: number;
  readonly source: "document" | "kept" | "fragment";
}

/** A checked file, and the objects that it held before and that its unreadable documents may still mean. */
export interface FileState extends CheckedFile {
  readonly kept: readonly CheckedObject[];
}

/** Limit for the pairwise comparison of unidentified documents with the objects that the file held before. */
const MAX_UNIDENTIFIED = 100;
/** Limit of reported duplicates per object; each report has to look up a position in the text. */
const MAX_DUPLICATES = 100;

/**
 * Adds to a file the objects that it held before and that its broken documents may still mean.
 * @param before the previous state of the file
 */
export function keepHidden(file: CheckedFile, before: FileState | undefined): FileState {
  if (before === undefined || file.unidentified.length === 0) return { ...file, kept: [] };
  const present = new Set(file.objects.map(({ id }) => objectKey(id)));
  // With so many unidentified documents the comparison is too expensive: any of the earlier objects may be meant, so
  // keep all.
  const isAny = file.unidentified.length > MAX_UNIDENTIFIED;
  const kept = [...before.objects, ...before.kept].filter(
    ({ id }) =>
      !present.has(objectKey(id)) && (isAny || file.unidentified.some((identity) => hasIdentity(id, identity))),
  );
  // A policy without a name is probably the one that is kept and serves on, so there is nothing to close.
  const keepsPolicy = kept.some(({ id }) => isPolicy(id));
  const fragments = file.fragments.filter(({ isNameless }) => !isNameless || !keepsPolicy);
  return { ...file, fragments, kept };
}

/**
 * Holds the claims of all files and the object that is in force for each key. `put` only records which keys a file
 * touched; `take` decides those keys again and returns the difference, so several files can change in one consistent
 * step.
 */
export class Assembly {
  readonly #files = new Map<string, FileState>();
  /** Claims by object key; `take` sorts the list of each changed object by file and position. */
  readonly #candidates = new Map<string, Candidate[]>();
  readonly #held = new Map<string, ActiveObject>();
  readonly #diagnostics = new Map<string, readonly FileDiagnostic[]>();
  readonly #duplicates = new Map<string, readonly FileDiagnostic[]>();
  /** Keys of the objects whose claims changed since the last `take`. */
  readonly #moved = new Set<string>();

  /** Replaces the content of a file; `undefined` removes the file. */
  put(path: string, file: FileState | undefined): void {
    const before = this.#files.get(path);
    if (before === file) return;
    for (const key of new Set(candidatesOf(before).map(({ object }) => objectKey(object.id))))
      this.#withdraw(key, path);
    for (const candidate of candidatesOf(file)) this.#addCandidate(objectKey(candidate.object.id), candidate);
    if (file === undefined) this.#files.delete(path);
    else this.#files.set(path, file);
    if (file === undefined || file.diagnostics.length === 0) this.#diagnostics.delete(path);
    else this.#diagnostics.set(path, file.diagnostics);
  }

  /** Returns the changes since the last call. Deletions come first, so that a renamed object never exists twice. */
  take(): ObjectEvent[] {
    const deleted: ObjectEvent[] = [];
    const set: { readonly candidate: Candidate; readonly event: ObjectEvent }[] = [];
    for (const key of this.#moved) {
      const candidates = this.#candidates.get(key)?.sort(byOrder) ?? [];
      this.#noteDuplicates(key, candidates);
      const before = this.#held.get(key);
      const [candidate, held] = choose(candidates, before) ?? [];
      if (candidate === undefined || held === undefined) {
        if (before === undefined) continue;
        this.#held.delete(key);
        deleted.push({ type: "delete", id: before.id });
        continue;
      }
      if (before !== undefined && (before === held || deepEqual(before, held))) continue;
      this.#held.set(key, held);
      set.push({ candidate, event: held.type === "set" ? { type: "set", object: held.object } : held });
    }
    this.#moved.clear();
    return [...deleted, ...set.sort((a, b) => byOrder(a.candidate, b.candidate)).map(({ event }) => event)];
  }

  diagnostics(): FileDiagnostic[] {
    return [...this.#diagnostics.values(), ...this.#duplicates.values()].flat().sort(byPlace);
  }

  /** Returns the diagnostics together with their effect on the objects that serve, as of the last `take`. */
  diagnosticsWithEffects(): SourceDiagnostic[] {
    return this.diagnostics().map((diagnostic) =>
      diagnostic.lost === undefined
        ? diagnostic
        : { ...diagnostic, effect: this.#effectOf(diagnostic.file, diagnostic.lost) },
    );
  }

  /** Describes which objects keep serving although a file, or everything below a folder, cannot be read. */
  effectOfUnreadable(isAffected: (file: string) => boolean): string {
    const files = [...this.#files].filter(([path]) => isAffected(path)).map(([, file]) => file);
    return this.#effectOn(files.flatMap(({ objects, kept }) => [...objects, ...kept]));
  }

  #effectOf(path: string, lost: Identity): string {
    const file = this.#files.get(path);
    if (file === undefined) return effectText([], []);
    if (isWhole(lost)) return this.#effectOn([{ id: lost }]);
    return this.#effectOn([...file.kept, ...file.fragments].filter(({ id }) => hasIdentity(id, lost)));
  }

  #effectOn(objects: readonly { readonly id: ObjectId }[]): string {
    const kept = new Set<string>();
    const closed = new Set<string>();
    for (const { id } of objects) {
      const held = this.#held.get(objectKey(id));
      if (held === undefined) continue;
      (held.type === "set" ? kept : closed).add(titleOf(held.object));
    }
    return effectText([...kept], [...closed]);
  }

  /** Returns every object that some file defines, once each, including refused ones. */
  objects(): CheckedObject[] {
    return [...this.#candidates.values()].flatMap(([candidate]) => (candidate === undefined ? [] : [candidate.object]));
  }

  /** Returns the definition of an object, or undefined when no file holds it. */
  find(id: ObjectId): CheckedObject | undefined {
    return this.#candidates.get(objectKey(id))?.[0]?.object;
  }

  #addCandidate(key: string, candidate: Candidate): void {
    const candidates = this.#candidates.get(key);
    if (candidates === undefined) this.#candidates.set(key, [candidate]);
    else candidates.push(candidate);
    this.#moved.add(key);
  }

  #withdraw(key: string, path: string): void {
    const left = (this.#candidates.get(key) ?? []).filter(({ object }) => object.file !== path);
    if (left.length === 0) this.#candidates.delete(key);
    else this.#candidates.set(key, left);
    this.#moved.add(key);
  }

  #noteDuplicates(key: string, candidates: readonly Candidate[]): void {
    const [first, ...others] = candidates.filter(({ source }) => source === "document");
    if (first === undefined || others.length === 0) this.#duplicates.delete(key);
    else
      this.#duplicates.set(
        key,
        others.slice(0, MAX_DUPLICATES).map(({ object }) => duplicateOf(object, first.object)),
      );
  }
}

function candidatesOf(file: FileState | undefined): Candidate[] {
  if (file === undefined) return [];
  const { objects, kept, fragments } = file;
  return [
    ...objects.map((object, at): Candidate => ({ object, at, source: "document" })),
    ...kept.map((object, at): Candidate => ({ object, at: objects.length + at, source: "kept" })),
    ...fragments.map((object, at): Candidate => ({
      object,
      at: objects.length + kept.length + at,
      source: "fragment",
    })),
  ];
}

/**
 * Chooses the claim that counts for an object: the first readable document; without one, an object that a broken file
 * held before; without that, a fragment of a broken document.
 */
function choose(
  candidates: readonly Candidate[],
  before: ActiveObject | undefined,
): [Candidate, ActiveObject] | undefined {
  const readable = candidates.find(({ source }) => source === "document");
  const hidden = (["kept", "fragment"] as const).flatMap((wanted) =>
    candidates.filter(({ source }) => source === wanted),
  );
  for (const candidate of readable === undefined ? hidden : [readable]) {
    const held = activate(candidate.object, before);
    if (held !== undefined) return [candidate, held];
  }
  return undefined;
}

/**
 * Decides what a claim puts in force: the object when it is valid; otherwise its last accepted version; otherwise, for
 * a policy, a rejection that closes its targets. Returns undefined when nothing is in force.
 */
function activate({ id, object, rejection }: CheckedObject, last: ActiveObject | undefined): ActiveObject | undefined {
  if (rejection === undefined) return { type: "set", id, object };
  if (last?.type === "set") return last;
  return isPolicy(id) ? { type: "refused", id, object, reason: rejection } : undefined;
}

function isPolicy({ group, kind }: ObjectId): boolean {
  return group === GWPROXY_GROUP && kind === "GwPolicy";
}

function isWhole(identity: Identity): identity is ObjectId {
  const { group, kind, namespace, name } = identity;
  return group !== undefined && kind !== undefined && namespace !== undefined && name !== undefined;
}

/** Limit of names that are printed from a long list. */
const MAX_NAMES = 5;

function effectText(kept: readonly string[], closed: readonly string[]): string {
  const parts = [
    ...(kept.length === 0 ? [] : [`kept: ${listed(kept)} as accepted before`]),
    ...(closed.length === 0 ? [] : [`closed: what ${listed(closed)} targets answers 500 until it is mended`]),
  ];
  return parts.length === 0 ? "not loaded" : parts.join("; ");
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  return more > 0 ? `${names.slice(0, MAX_NAMES).join(", ")} and ${more} more` : names.join(", ");
}

function duplicateOf(second: CheckedObject, first: CheckedObject): FileDiagnostic {
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
    lost: undefined,
  };
}

function byOrder(a: Candidate, b: Candidate): number {
  return compare(a.object.file, b.object.file) || a.at - b.at;
}

export function byPlace(a: SourceDiagnostic, b: SourceDiagnostic): number {
  return compare(a.file, b.file) || a.line - b.line || a.column - b.column;
}
