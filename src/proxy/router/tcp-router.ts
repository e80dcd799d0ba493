/** Routes of bytes by listener and server name: the most specific name, and of several routes the oldest (Gateway API). */
import type { TcpRoute } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createPicker } from "../backends/select.ts";
import { ProxyError } from "../errors.ts";
import { HostMap } from "./host.ts";
import { compare } from "./precedence.ts";

type Pick = () => string | undefined;

interface Entry {
  readonly route: TcpRoute;
  readonly pick: Pick;
}

export class TcpRouter {
  readonly #routes = new Map<string, Entry>();
  /** By key of the listener; made when first asked for after a change. */
  #hosts: Map<string, HostMap<Pick>> | undefined;

  put(route: TcpRoute): void {
    const choices = route.backends.map(({ weight, backend, invalidReason }) => ({
      weight,
      value: invalidReason === "" ? backend : "",
    }));
    this.#routes.set(route.key, { route, pick: createPicker(choices) });
    this.#hosts = undefined;
  }

  remove(key: string): void {
    this.#routes.delete(key);
    this.#hosts = undefined;
  }

  /**
   * @param serverName in lower case, "" for none
   * @returns key of the backend that is to serve a connection
   * @throws ProxyError route_not_found, backend_invalid
   */
  choose(listener: string, serverName: string): string {
    this.#hosts ??= this.#index();
    const pick = this.#hosts.get(listener)?.find(serverName);
    if (pick === undefined) throw new ProxyError("route_not_found");
    const backend = pick();
    if (backend === undefined || backend === "") throw new ProxyError("backend_invalid");
    return backend;
  }

  #index(): Map<string, HostMap<Pick>> {
    const byListener = new Map<string, HostMap<Pick>>();
    const byAge = [...this.#routes.values()].sort(
      (a, b) => compare(a.route.createdAtMs, b.route.createdAtMs) || compare(a.route.key, b.route.key),
    );
    for (const { route, pick } of byAge)
      for (const { listener, hostnames } of route.parents) {
        let hosts = byListener.get(listener);
        if (hosts === undefined) byListener.set(listener, (hosts = new HostMap()));
        for (const hostname of hostnames.length === 0 ? [""] : hostnames)
          if (hosts.get(hostname) === undefined) hosts.set(hostname, pick);
      }
    return byListener;
  }
}
