/**
 * Describes binds, listeners and routes for the console of the admin server, in the words of manifests. It names what a
 * route matches and where it leads; policies are explained by `/explain`.
 */
import { createHash } from "node:crypto";
import { Protocol, type HttpMatch, type HttpRule } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type {
  BindData,
  ConfigurationContent,
  ConfigurationData,
  ListenerData,
  RouteData,
  RuleData,
} from "../console/data.ts";
import type { Resource, ResourceType } from "../ir/resource.ts";
import { compare } from "../lib/compare.ts";
import type { ProxyState } from "../proxy/proxy.ts";

type Of<T extends ResourceType> = Extract<Resource, { type: T }>;

const SHOWN: ReadonlySet<ResourceType> = new Set(["Bind", "Listener", "HttpRoute", "TcpRoute"]);

/**
 * @param known revision that the page has already; its content is left out then
 * @param appliedAt RFC 3339; null before the first update
 */
export function describeConfiguration(
  state: ProxyState,
  known: string | undefined,
  appliedAt: string | null,
): ConfigurationData {
  const shown = state.resources.filter(({ type }) => SHOWN.has(type)).sort((a, b) => compare(a.key, b.key));
  const revision = digestOf(shown, state);
  return { revision, appliedAt, ...(known === revision ? {} : { content: contentOf(shown, state) }) };
}

function digestOf(resources: readonly Resource[], { listeners }: ProxyState): string {
  const hash = createHash("sha256");
  for (const { type, key, version } of resources) hash.update(`${type} ${key} ${version}\n`);
  for (const { bind, boundPort } of listeners) hash.update(`${bind} ${boundPort}\n`);
  return hash.digest("hex").slice(0, 12);
}

function contentOf(resources: readonly Resource[], state: ProxyState): ConfigurationContent {
  const routes = resources.flatMap((resource) => routeOf(resource));
  const counts = new Map<string, number>();
  for (const key of routes.flatMap(({ listeners }) => listeners)) counts.set(key, (counts.get(key) ?? 0) + 1);
  const listeners = Map.groupBy(
    resources.filter((resource): resource is Of<"Listener"> => resource.type === "Listener"),
    ({ message }) => message.bind,
  );
  const binds = resources
    .filter((resource): resource is Of<"Bind"> => resource.type === "Bind")
    .map(({ key, message }): BindData => {
      const { gateway, port, protocol, internal } = message;
      const openPort = state.listeners.find(({ bind }) => bind === key)?.boundPort ?? null;
      const own = (listeners.get(key) ?? []).map((each) => listenerOf(each, counts.get(each.key) ?? 0));
      const described = { gateway: nameOf(gateway), protocol: protocolOf(protocol), isInternal: internal };
      return { key, port, openPort, ...described, listeners: own };
    });
  return { binds, routes };
}

function listenerOf({ key, message }: Of<"Listener">, routes: number): ListenerData {
  const { name, hostname, protocol, listenerSet } = message;
  const set = listenerSet === undefined ? null : nameOf(listenerSet);
  return { key, name, hostname, protocol: protocolOf(protocol), listenerSet: set, routes };
}

function routeOf(resource: Resource): RouteData[] {
  if (resource.type !== "HttpRoute" && resource.type !== "TcpRoute") return [];
  const { key, message } = resource;
  const { object, parents } = message;
  const hostnames = [...new Set(parents.flatMap((parent) => parent.hostnames))];
  const rules =
    resource.type === "HttpRoute"
      ? resource.message.rules.map(ruleOf)
      : [{ rule: "0", matches: [], ...targetsOf(resource.message.backends) }];
  const listeners = parents.map(({ listener }) => listener);
  return [{ key, kind: object?.kind ?? "", name: nameOf(object), hostnames, listeners, rules }];
}

function ruleOf({ name, matches, backends, invalidReason }: HttpRule, at: number): RuleData {
  const targets = targetsOf(backends);
  const problems = invalidReason === "" ? targets.problems : [invalidReason, ...targets.problems];
  return { rule: name === "" ? String(at) : name, matches: matches.map(matchText), ...targets, problems };
}

function targetsOf(backends: HttpRule["backends"]): Pick<RuleData, "backends" | "problems"> {
  const shown = backends.map(({ backend, weight }) => {
    const share = backends.length === 1 ? "" : ` (weight ${weight})`;
    return `${backend === "" ? "no backend" : backendName(backend)}${share}`;
  });
  return { backends: shown, problems: backends.flatMap(({ invalidReason: why }) => (why === "" ? [] : [why])) };
}

const KINDS: Readonly<Record<string, string>> = { service: "Service", backend: "GwBackend", models: "models of" };

/** Returns the key of a Backend in words, such as "Service default/shop:80". */
export function backendName(key: string): string {
  const slash = key.indexOf("/");
  const kind = KINDS[key.slice(0, slash)];
  return kind === undefined ? key : `${kind} ${key.slice(slash + 1)}`;
}

/** Returns a match as text, such as "GET /shop/* x-user: bob ?page=1"; a regular expression begins with "~". */
function matchText({ path, method, headers, query }: HttpMatch): string {
  const parts = [method, pathText(path)];
  for (const { name, value } of headers) parts.push(`${name}: ${valueText(value)}`);
  for (const { name, value } of query) parts.push(`?${name}=${valueText(value)}`);
  return parts.filter((part) => part !== "").join(" ");
}

function pathText(path: HttpMatch["path"]): string {
  if (path.case === "exact") return path.value;
  if (path.case === "regex") return `~${path.value}`;
  return `${(path.value ?? "").replace(/\/$/, "")}/*`;
}

function valueText(value: HttpMatch["headers"][number]["value"]): string {
  return value.case === "regex" ? `~${value.value}` : (value.value ?? "");
}

function nameOf(object: { readonly namespace: string; readonly name: string } | undefined): string {
  return object === undefined ? "" : `${object.namespace}/${object.name}`;
}

const PROTOCOLS: ReadonlyMap<Protocol, string> = new Map(
  Object.entries(Protocol).map(([name, protocol]) => [protocol, name]),
);

function protocolOf(protocol: Protocol): string {
  return PROTOCOLS.get(protocol) ?? "";
}
