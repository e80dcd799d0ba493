/**
 * The routes of one listener, by host and then by path. The cost of changing one route depends on the matches of that
 * route and not on the number of routes. `ListenerTable` holds one per listener, `DelegationTable` one per group.
 */
import { HostMap } from "./host.ts";
import type { Routable } from "./match.ts";
import { PathTable } from "./path-table.ts";
import type { Candidate } from "./precedence.ts";

interface RouteEntry<Rule> {
  readonly hosts: readonly string[];
  readonly candidates: readonly Candidate<Rule>[];
}

export class ListenerRouter<Rule> {
  readonly #hosts = new HostMap<PathTable<Rule>>();
  readonly #entries = new Map<string, RouteEntry<Rule>>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Replaces the route. @param hostnames empty for every host */
  put(route: string, hostnames: readonly string[], candidates: readonly Candidate<Rule>[]): void {
    this.remove(route);
    const hosts = hostnames.length === 0 ? [""] : [...new Set(hostnames.map((host) => host.toLowerCase()))];
    this.#entries.set(route, { hosts, candidates });
    for (const host of hosts) {
      let table = this.#hosts.get(host);
      if (table === undefined) this.#hosts.set(host, (table = new PathTable()));
      for (const candidate of candidates) table.add(candidate);
    }
  }

  remove(route: string): void {
    const entry = this.#entries.get(route);
    if (entry === undefined) return;
    this.#entries.delete(route);
    for (const host of entry.hosts) {
      const table = this.#hosts.get(host);
      if (table === undefined) continue;
      for (const candidate of entry.candidates) table.remove(candidate);
      if (table.size === 0) this.#hosts.set(host, undefined);
    }
  }

  /**
   * Returns the first rule of each route whose host fits, for operators; they were evaluated, and one of them may match.
   * @param host as `hostOf` returns it
   */
  evaluated(host: string, limit: number): Rule[] {
    const rules: Rule[] = [];
    for (const { hosts, candidates } of this.#entries.values()) {
      if (rules.length >= limit) break;
      const first = candidates[0];
      if (first !== undefined && hosts.some((pattern) => hostMatches(pattern, host))) rules.push(first.rule);
    }
    return rules;
  }

  /** @param host as `hostOf` returns it @param path without the query */
  find(host: string, path: string, request: Routable): Candidate<Rule> | undefined {
    return this.#hosts.first(host, (table) => table.find(path, request));
  }
}

function hostMatches(pattern: string, host: string): boolean {
  if (pattern === "" || pattern === "*") return true;
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) && host.length >= pattern.length : pattern === host;
}
