/** Attributes that are read off something when an expression asks for them, and not before. */
import { AttributeMap } from "../../cel/values.ts";

/** @returns undefined when there is no such attribute at this moment */
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
