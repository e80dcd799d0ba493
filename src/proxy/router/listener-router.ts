/** The routes of one listener by host and path. A change of one route rebuilds the tables of its hosts and no others. */
import { HostMap } from "./host.ts";
import type { Routable } from "./match.ts";
import { PathTable } from "./path-table.ts";
import type { Candidate } from "./precedence.ts";

interface HostEntry<Rule> {
  readonly routes: Map<string, readonly Candidate<Rule>[]>;
  table: PathTable<Rule>;
}

export class ListenerRouter<Rule> {
  readonly #hosts = new HostMap<HostEntry<Rule>>();
  readonly #hostsOfRoute = new Map<string, readonly string[]>();
  readonly #stale = new Set<string>();

  /** Takes effect with the next `settle`. @param hostnames empty: every host */
  put(route: string, hostnames: readonly string[], candidates: readonly Candidate<Rule>[]): void {
    this.remove(route);
    const hosts = hostnames.length === 0 ? [""] : [...new Set(hostnames.map((host) => host.toLowerCase()))];
    this.#hostsOfRoute.set(route, hosts);
    for (const host of hosts) {
      let entry = this.#hosts.get(host);
      if (entry === undefined) this.#hosts.set(host, (entry = { routes: new Map(), table: new PathTable([]) }));
      entry.routes.set(route, candidates);
      this.#stale.add(host);
    }
  }

  remove(route: string): void {
    for (const host of this.#hostsOfRoute.get(route) ?? []) {
      this.#hosts.get(host)?.routes.delete(route);
      this.#stale.add(host);
    }
    this.#hostsOfRoute.delete(route);
  }

  /** Makes what was put and removed count, all of it at once. */
  settle(): void {
    for (const host of this.#stale) {
      const entry = this.#hosts.get(host);
      if (entry === undefined) continue;
      if (entry.routes.size === 0) this.#hosts.set(host, undefined);
      else entry.table = new PathTable([...entry.routes.values()].flat());
    }
    this.#stale.clear();
  }

  /** @param host as hostOf returns it @param path without the query */
  find(host: string, path: string, request: Routable): Candidate<Rule> | undefined {
    return this.#hosts.first(host, ({ table }) => table.find(path, request));
  }
}
