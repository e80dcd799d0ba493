/**
 * Checked files → the objects in force. Decides what a fault costs: a broken file keeps what it said last, a refused
 * object keeps its last accepted version, and a refused GwPolicy is passed on as refused, so that it never opens a route.
 * A file that changes costs what it holds and held, however many others there are.
 */
import { type KubeObject, type ObjectId, objectKey } from "../../api/object.ts";
import { deepEqual } from "../../lib/deep-equal.ts";
import type { ObjectEvent, SourceProblem } from "../source.ts";
import { type CheckedFile, type CheckedObject, type FileProblem, titleOf } from "./check.ts";
import { compare } from "../../lib/compare.ts";

type Held =
  | { readonly type: "set"; readonly id: ObjectId; readonly object: KubeObject }
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: KubeObject; readonly reason: string };

/** One place that defines an object. */
interface Claim {
  readonly object: CheckedObject;
  /** Place in the file; what broken documents seem to hold comes last. */
  readonly at: number;
  readonly isFragment: boolean;
}

export class Assembly {
  readonly #files = new Map<string, CheckedFile>();
  /** By object, in the order of files and places. */
  readonly #claims = new Map<string, Claim[]>();
  readonly #held = new Map<string, Held>();
  readonly #problems = new Map<string, readonly FileProblem[]>();
  readonly #duplicates = new Map<string, readonly FileProblem[]>();
  /** Objects whose claims changed since `take`. */
  readonly #moved = new Set<string>();

  /** What a file says from now on; undefined: it is gone. */
  put(path: string, file: CheckedFile | undefined): void {
    const before = this.#files.get(path);
    if (before === file) return;
    for (const { object } of claimsOf(before)) this.#withdraw(objectKey(object.id), path);
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
      const claims = this.#claims.get(key) ?? [];
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

  /** Where an object is defined; undefined where no file holds it. */
  find(id: ObjectId): CheckedObject | undefined {
    return this.#claims.get(objectKey(id))?.[0]?.object;
  }

  #claim(key: string, claim: Claim): void {
    const claims = [...(this.#claims.get(key) ?? []), claim].sort(byOrder);
    this.#claims.set(key, claims);
    this.#moved.add(key);
  }

  #withdraw(key: string, path: string): void {
    const left = (this.#claims.get(key) ?? []).filter(({ object }) => object.file !== path);
    if (left.length === 0) this.#claims.delete(key);
    else this.#claims.set(key, left);
    this.#moved.add(key);
  }

  #noteDuplicates(key: string, claims: readonly Claim[]): void {
    const [first, ...others] = claims.filter(({ isFragment }) => !isFragment);
    if (first === undefined || others.length === 0) this.#duplicates.delete(key);
    else
      this.#duplicates.set(
        key,
        others.map(({ object }) => duplicateOf(object, first.object)),
      );
  }
}

function claimsOf(file: CheckedFile | undefined): Claim[] {
  if (file === undefined) return [];
  const all = [...file.objects, ...file.fragments];
  return all.map((object, at) => ({ object, at, isFragment: at >= file.objects.length }));
}

/** The first readable document counts. What a broken one seems to hold counts only where no readable one says it. */
function choose(claims: readonly Claim[], before: Held | undefined): [Claim, Held] | undefined {
  const readable = claims.find(({ isFragment }) => !isFragment);
  for (const claim of readable === undefined ? claims : [readable]) {
    const held = hold(claim.object, before);
    if (held !== undefined) return [claim, held];
  }
  return undefined;
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

function byOrder(a: Claim, b: Claim): number {
  return compare(a.object.file, b.object.file) || a.at - b.at;
}

export function byPlace(a: SourceProblem, b: SourceProblem): number {
  return compare(a.file, b.file) || a.line - b.line || a.column - b.column;
}
