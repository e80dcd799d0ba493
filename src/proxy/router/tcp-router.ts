/**
 * Chooses the route of a raw connection by listener and server name (TCPRoute, TLSRoute): the most specific name wins,
 * and among equal names the oldest route (Gateway API). `Configuration` holds one per proxy.
 */
import type { TcpRoute } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createPicker } from "../balancing/select.ts";
import { ProxyError } from "../exchange/errors.ts";
import { HostMap } from "./host.ts";
import { compare } from "../../lib/compare.ts";

export interface TcpRouteEntry {
  readonly route: TcpRoute;
  /** Picks the key of a backend by weight. @throws ProxyError backend_invalid */
  readonly pick: () => string;
}

export class TcpRouter {
  readonly #routes = new Map<string, TcpRouteEntry>();
  /** By listener key; built at the first look-up after a change. */
  #hosts: Map<string, HostMap<TcpRouteEntry>> | undefined;

  put(route: TcpRoute): void {
    const choices = route.backends.map(({ weight, backend, invalidReason }) => ({
      weight,
      value: invalidReason === "" ? backend : "",
    }));
    const draw = createPicker(choices);
    const pick = (): string => {
      const backend = draw();
      if (backend === undefined || backend === "") throw new ProxyError("backend_invalid");
      return backend;
    };
    this.#routes.set(route.key, { route, pick });
    this.#hosts = undefined;
  }

  remove(key: string): void {
    this.#routes.delete(key);
    this.#hosts = undefined;
  }

  /** Returns the TCPRoute and the TLSRoute of a name. @param name "namespace/name" */
  named(name: string): TcpRoute[] {
    return [...this.#routes.values()].flatMap(({ route }) =>
      `${route.object?.namespace}/${route.object?.name}` === name ? [route] : [],
    );
  }

  /**
   * @param serverName SNI in lower case, "" for none
   * @throws ProxyError route_not_found
   */
  find(listener: string, serverName: string): TcpRouteEntry {
    this.#hosts ??= this.#index();
    const entry = this.#hosts.get(listener)?.find(serverName);
    if (entry === undefined) throw new ProxyError("route_not_found");
    return entry;
  }

  #index(): Map<string, HostMap<TcpRouteEntry>> {
    const byListener = new Map<string, HostMap<TcpRouteEntry>>();
    const byAge = [...this.#routes.values()].sort(
      (a, b) => compare(a.route.createdAtMs, b.route.createdAtMs) || compare(a.route.key, b.route.key),
    );
    for (const entry of byAge)
      for (const { listener, hostnames } of entry.route.parents) {
        let hosts = byListener.get(listener);
        if (hosts === undefined) byListener.set(listener, (hosts = new HostMap()));
        for (const hostname of hostnames.length === 0 ? [""] : hostnames)
          if (hosts.get(hostname) === undefined) hosts.set(hostname, entry);
      }
    return byListener;
  }
}
