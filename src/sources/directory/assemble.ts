/**
 * Checked files → the objects in force. Decides what a fault costs: an object that breaks keeps its last accepted version,
 * as an API server would keep it, also where its document can no longer be read; a GwPolicy that was never accepted is passed
 * on as refused, so that it never opens a route. A file that changes costs what it holds and held, however many others there are.
 */
import { type KubeObject, type ObjectId, objectKey } from "../../api/object.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { deepEqual } from "../../lib/deep-equal.ts";
import type { ObjectEvent, SourceProblem } from "../source.ts";
import { type CheckedFile, type CheckedObject, type FileProblem, titleOf } from "./check.ts";
import { hasIdentity, type Identity } from "./identity.ts";
import { compare } from "../../lib/compare.ts";

type Held =
  | { readonly type: "set"; readonly id: ObjectId; readonly object: KubeObject }
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: KubeObject; readonly reason: string };

/** One place that defines an object. */
interface Claim {
  readonly object: CheckedObject;
  /** Place in the file; what was kept of it and what broken documents seem to hold come last. */
  readonly at: number;
  readonly source: "document" | "kept" | "fragment";
}

/** A file and the objects that it held before and that its unreadable documents may still stand for. */
export interface FileState extends CheckedFile {
  readonly kept: readonly CheckedObject[];
}

/** Each object that a file held is compared with each of them. */
const MAX_UNIDENTIFIED = 100;
/** Places where an object is defined once more that are told of; each has to be looked up. */
const MAX_DUPLICATES = 100;

/** Adds to a file what it held and what its broken documents may stand for. @param before the last state of the file */
export function keepHidden(file: CheckedFile, before: FileState | undefined): FileState {
  if (before === undefined || file.unidentified.length === 0) return { ...file, kept: [] };
  const present = new Set(file.objects.map(({ id }) => objectKey(id)));
  // Thousands of documents that stand for something else leave no object certain: then each may be meant.
  const isAny = file.unidentified.length > MAX_UNIDENTIFIED;
  const kept = [...before.objects, ...before.kept].filter(
    ({ id }) =>
      !present.has(objectKey(id)) && (isAny || file.unidentified.some((identity) => hasIdentity(id, identity))),
  );
  // A policy without a name is probably the one that is kept: it serves on, and there is nothing to close.
  const keepsPolicy = kept.some(({ id }) => isPolicy(id));
  const fragments = file.fragments.filter(({ isNameless }) => !isNameless || !keepsPolicy);
  return { ...file, fragments, kept };
}

export class Assembly {
  readonly #files = new Map<string, FileState>();
  /** By object; in the order of files and places after `take`. */
  readonly #claims = new Map<string, Claim[]>();
  readonly #held = new Map<string, Held>();
  readonly #problems = new Map<string, readonly FileProblem[]>();
  readonly #duplicates = new Map<string, readonly FileProblem[]>();
  /** Objects whose claims changed since `take`. */
  readonly #moved = new Set<string>();

  /** What a file says from now on; undefined: it is gone. */
  put(path: string, file: FileState | undefined): void {
    const before = this.#files.get(path);
    if (before === file) return;
    for (const key of new Set(claimsOf(before).map(({ object }) => objectKey(object.id)))) this.#withdraw(key, path);
    for (const claim of claimsOf(file)) this.#claim(objectKey(claim.object.id), claim);
    if (file === undefined) this.#files.delete(path);
    else this.#files.set(path, file);
    if (file === undefined || file.problems.length === 0) this.#problems.delete(path);
    else this.#problems.set(path, file.problems);
  }

  /** The step from the state at the last call: what vanished first, so that a renamed object is never there twice. */
  take(): ObjectEvent[] {
    const deleted: ObjectEvent[] = [];
    const set: { readonly claim: Claim; readonly event: ObjectEvent }[] = [];
    for (const key of this.#moved) {
      const claims = this.#claims.get(key)?.sort(byOrder) ?? [];
      this.#noteDuplicates(key, claims);
      const before = this.#held.get(key);
      const [claim, held] = choose(claims, before) ?? [];
      if (claim === undefined || held === undefined) {
        if (before === undefined) continue;
        this.#held.delete(key);
        deleted.push({ type: "delete", id: before.id });
        continue;
      }
      if (before !== undefined && (before === held || deepEqual(before, held))) continue;
      this.#held.set(key, held);
      set.push({ claim, event: held.type === "set" ? { type: "set", object: held.object } : held });
    }
    this.#moved.clear();
    return [...deleted, ...set.sort((a, b) => byOrder(a.claim, b.claim)).map(({ event }) => event)];
  }

  problems(): FileProblem[] {
    return [...this.#problems.values(), ...this.#duplicates.values()].flat().sort(byPlace);
  }

  /** The problems with what each costs among the objects that serve, as they were at the last `take`. */
  problemsWithEffects(): SourceProblem[] {
    return this.problems().map((problem) =>
      problem.lost === undefined ? problem : { ...problem, effect: this.#effectOf(problem.file, problem.lost) },
    );
  }

  /** What keeps serving although the file, or all below the folder, cannot be read. */
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

  /** Every object that some file defines, refused ones included, each once. */
  objects(): CheckedObject[] {
    return [...this.#claims.values()].flatMap(([claim]) => (claim === undefined ? [] : [claim.object]));
  }

  /** Where an object is defined; undefined where no file holds it. */
  find(id: ObjectId): CheckedObject | undefined {
    return this.#claims.get(objectKey(id))?.[0]?.object;
  }

  #claim(key: string, claim: Claim): void {
    const claims = this.#claims.get(key);
    if (claims === undefined) this.#claims.set(key, [claim]);
    else claims.push(claim);
    this.#moved.add(key);
  }

  #withdraw(key: string, path: string): void {
    const left = (this.#claims.get(key) ?? []).filter(({ object }) => object.file !== path);
    if (left.length === 0) this.#claims.delete(key);
    else this.#claims.set(key, left);
    this.#moved.add(key);
  }

  #noteDuplicates(key: string, claims: readonly Claim[]): void {
    const [first, ...others] = claims.filter(({ source }) => source === "document");
    if (first === undefined || others.length === 0) this.#duplicates.delete(key);
    else
      this.#duplicates.set(
        key,
        others.slice(0, MAX_DUPLICATES).map(({ object }) => duplicateOf(object, first.object)),
      );
  }
}

function claimsOf(file: FileState | undefined): Claim[] {
  if (file === undefined) return [];
  const { objects, kept, fragments } = file;
  return [
    ...objects.map((object, at): Claim => ({ object, at, source: "document" })),
    ...kept.map((object, at): Claim => ({ object, at: objects.length + at, source: "kept" })),
    ...fragments.map((object, at): Claim => ({ object, at: objects.length + kept.length + at, source: "fragment" })),
  ];
}

/**
 * The first readable document counts. Only where no readable one defines the object, what a broken file held before counts,
 * and then what its broken documents seem to hold.
 */
function choose(claims: readonly Claim[], before: Held | undefined): [Claim, Held] | undefined {
  const readable = claims.find(({ source }) => source === "document");
  const hidden = (["kept", "fragment"] as const).flatMap((wanted) => claims.filter(({ source }) => source === wanted));
  for (const claim of readable === undefined ? hidden : [readable]) {
    const held = hold(claim.object, before);
    if (held !== undefined) return [claim, held];
  }
  return undefined;
}

function hold({ id, object, refusal }: CheckedObject, last: Held | undefined): Held | undefined {
  if (refusal === undefined) return { type: "set", id, object };
  if (last?.type === "set") return last;
  return isPolicy(id) ? { type: "refused", id, object, reason: refusal } : undefined;
}

function isPolicy({ group, kind }: ObjectId): boolean {
  return group === GWPROXY_GROUP && kind === "GwPolicy";
}

function isWhole(identity: Identity): identity is ObjectId {
  const { group, kind, namespace, name } = identity;
  return group !== undefined && kind !== undefined && namespace !== undefined && name !== undefined;
}

/** Of a long list, this many names are printed. */
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
    lost: undefined,
  };
}

function byOrder(a: Claim, b: Claim): number {
  return compare(a.object.file, b.object.file) || a.at - b.at;
}

export function byPlace(a: SourceProblem, b: SourceProblem): number {
  return compare(a.file, b.file) || a.line - b.line || a.column - b.column;
}
