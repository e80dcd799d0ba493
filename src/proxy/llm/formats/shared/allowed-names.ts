/**
 * Names of tools for OpenAI, Anthropic and Converse, which allow 64 letters, digits, `_` and `-`, and identifiers of calls
 * for the last two, which allow the same characters. Others are replaced in a way that depends on nothing but the request, so
 * that all replicas and all turns of a conversation agree.
 */
import { hash } from "node:crypto";

const ALLOWED = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_LENGTH = 64;
const KEPT_LENGTH = 57;
const DIGEST_LENGTH = 6;

export class AllowedNames {
  readonly #replacements = new Map<string, string>();
  readonly #originals = new Map<string, string>();

  /** @param names all names of a request; those that are allowed stay, so that no replacement takes their place */
  constructor(names: Iterable<string>) {
    const refused = new Set<string>();
    for (const name of names)
      if (ALLOWED.test(name)) this.#originals.set(name, name);
      else refused.add(name);
    for (const name of refused) this.#replace(name);
  }

  /** @param name one of the names that the constructor was given */
  allowed(name: string): string {
    return this.#replacements.get(name) ?? name;
  }

  /** Returns the original names by their replacements; undefined when all names are allowed. */
  get originals(): ReadonlyMap<string, string> | undefined {
    if (this.#replacements.size === 0) return undefined;
    return new Map([...this.#replacements].map(([name, replacement]) => [replacement, name]));
  }

  #replace(name: string): void {
    const cleaned = name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
    let replacement = cleaned;
    for (let salt = ""; this.#isUnusable(replacement); salt += "+")
      replacement = `${cleaned.slice(0, KEPT_LENGTH)}_${hash("sha256", name + salt).slice(0, DIGEST_LENGTH)}`;
    this.#originals.set(replacement, name);
    this.#replacements.set(name, replacement);
  }

  #isUnusable(name: string): boolean {
    return name === "" || name.length > MAX_LENGTH || this.#originals.has(name);
  }
}
