/**
 * Builds the answer of /config_dump (docs/reference/admin.md): the resources of a data plane by kind, with secrets
 * masked. The admin server uses it. Listeners are nested below their Bind and routes below each listener that they are
 * attached to, which is the order in which a request finds them.
 */
import { printable } from "../ir/print.ts";
import type { Resource, ResourceType } from "../ir/resource.ts";
import type { ProxyState } from "../proxy/proxy.ts";
import { VERSION } from "../lib/version.ts";

type Of<T extends ResourceType> = Extract<Resource, { type: T }>;

export function configDump(state: ProxyState, config: object): object {
  const of = <T extends ResourceType>(type: T): Of<T>[] =>
    // The cast holds because the filter leaves exactly the members of that type.
    (state.resources.filter((resource) => resource.type === type) as Of<T>[]).sort((a, b) => (a.key < b.key ? -1 : 1));
  const routes = [...of("HttpRoute"), ...of("TcpRoute")];
  const listeners = of("Listener");
  const routesOf = (listener: string): Of<"HttpRoute" | "TcpRoute">[] =>
    routes.filter(({ message }) => message.parents.some((parent) => parent.listener === listener));
  const endpoints = Map.groupBy(state.endpoints, ({ backend }) => backend);

  return {
    binds: of("Bind").map((bind) => ({
      ...bodyOf(bind),
      address: state.listeners.find(({ bind: key }) => key === bind.key)?.boundPort ?? null,
      listeners: byKey(
        listeners.filter(({ message }) => message.bind === bind.key),
        (listener) => ({ ...bodyOf(listener), routes: byKey(routesOf(listener.key), bodyOf) }),
      ),
    })),
    policies: of("Policy").map(bodyOf),
    backends: of("Backend").map((backend) => ({ ...bodyOf(backend), endpoints: endpoints.get(backend.key) ?? [] })),
    models: of("Model").map(bodyOf),
    services: of("Endpoints").map(bodyOf),
    workloadIdentity: state.workloadIdentity,
    credentials: state.credentials,
    version: { version: VERSION, node: process.versions.node },
    config,
  };
}

function bodyOf(resource: Resource): object {
  const value = printable(resource);
  return typeof value === "object" && value !== null ? value : {};
}

function byKey<T extends { readonly key: string }>(resources: readonly T[], print: (resource: T) => object): object {
  return Object.fromEntries(resources.map((resource) => [resource.key, print(resource)]));
}
