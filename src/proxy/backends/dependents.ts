/** Which backends are compiled with the settings of another one. The registry uses it to compile them anew. */
export class Dependents {
  readonly #dependents = new Map<string, Set<string>>();
  readonly #needs = new Map<string, readonly string[]>();

  /** @param needs the backends that a backend is compiled with; replaces those of before */
  put(key: string, needs: readonly string[]): void {
    for (const need of this.#needs.get(key) ?? []) {
      const others = this.#dependents.get(need);
      others?.delete(key);
      if (others?.size === 0) this.#dependents.delete(need);
    }
    this.#needs.delete(key);
    if (needs.length === 0) return;
    this.#needs.set(key, needs);
    for (const need of needs) {
      const others = this.#dependents.get(need);
      if (others === undefined) this.#dependents.set(need, new Set([key]));
      else others.add(key);
    }
  }

  /** Returns the backends that are compiled with this one. */
  of(key: string): Iterable<string> {
    return this.#dependents.get(key) ?? [];
  }
}
