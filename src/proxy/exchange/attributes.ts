/**
 * Lazy objects for expressions: an attribute is read from its subject when an expression asks for it. The roots
 * `request` and `proxy` (pipeline/roots.ts), `response` (response-root.ts) and those of connections (listeners/peer.ts)
 * are built from it.
 */
import { AttributeMap } from "../../cel/values.ts";

/** Reads one attribute. Returns undefined when the subject has no such attribute yet. */
export type Reader<Subject> = (subject: Subject) => unknown;

export class Attributes<Subject> extends AttributeMap {
  readonly #readers: ReadonlyMap<string, Reader<Subject>>;
  readonly #subject: Subject;

  constructor(readers: ReadonlyMap<string, Reader<Subject>>, subject: Subject) {
    super();
    this.#readers = readers;
    this.#subject = subject;
  }

  override get(name: string): unknown {
    return this.#readers.get(name)?.(this.#subject);
  }

  override has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  override names(): string[] {
    return [...this.#readers.keys()].filter((name) => this.has(name));
  }
}

export function readers<Subject>(
  byName: Readonly<Record<string, Reader<Subject>>>,
): ReadonlyMap<string, Reader<Subject>> {
  return new Map(Object.entries(byName));
}
