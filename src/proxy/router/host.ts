/**
 * A map by host name: the exact name first, then the longest wildcard, then the entry without a host, as the Gateway
 * API orders hostnames. Listeners, routes and TCP routes are looked up in it.
 */
export class HostMap<T> {
  readonly #exact = new Map<string, T>();
  /** Keyed by the part behind the star, with its dot. */
  readonly #wildcards = new Map<string, T>();
  #any: T | undefined;

  get isEmpty(): boolean {
    return this.#any === undefined && this.#exact.size === 0 && this.#wildcards.size === 0;
  }

  get(pattern: string): T | undefined {
    if (pattern === "" || pattern === "*") return this.#any;
    const lower = pattern.toLowerCase();
    return lower.startsWith("*.") ? this.#wildcards.get(lower.slice(1)) : this.#exact.get(lower);
  }

  /** @param value undefined removes the entry */
  set(pattern: string, value: T | undefined): void {
    if (pattern === "" || pattern === "*") {
      this.#any = value;
      return;
    }
    const lower = pattern.toLowerCase();
    const map = lower.startsWith("*.") ? this.#wildcards : this.#exact;
    const key = lower.startsWith("*.") ? lower.slice(1) : lower;
    if (value === undefined) map.delete(key);
    else map.set(key, value);
  }

  /**
   * Returns the first result of `use` that is not undefined, from the most to the least specific entry.
   * @param host as `hostOf` returns it
   */
  first<R>(host: string, use: (value: T) => R | undefined): R | undefined {
    const exact = this.#exact.get(host);
    if (exact !== undefined) {
      const found = use(exact);
      if (found !== undefined) return found;
    }
    if (this.#wildcards.size > 0) {
      // A wildcard matches one label or more (Gateway API), so "*.a.example" does not match "a.example".
      for (let dot = host.indexOf(".", 1); dot > 0; dot = host.indexOf(".", dot + 1)) {
        const value = this.#wildcards.get(host.slice(dot));
        const found = value === undefined ? undefined : use(value);
        if (found !== undefined) return found;
      }
    }
    return this.#any === undefined ? undefined : use(this.#any);
  }

  find(host: string): T | undefined {
    return this.first(host, (value) => value);
  }
}
