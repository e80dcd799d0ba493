/**
 * Compiles a configured provider into an endpoint: its target, credential and health rule, and how requests to it are
 * addressed. The LLM handler picks among these endpoints.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSettingsSchema,
  BackendTlsSchema,
  type BackendHttp,
  type BackendSettings,
  type Provider as ProviderNode,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { HeaderList } from "../../../lib/header-list.ts";
import type { Uint64 } from "../../../lib/uint64.ts";
import { hashEndpoint } from "../../balancing/affinity.ts";
import type { BalancedEndpoint } from "../../balancing/pick.ts";
import type { AuthCall, RequestAuth } from "../../upstream/auth.ts";
import type { UpstreamTarget } from "../../upstream/dial/connection-settings.ts";
import type { EndpointStats } from "../../balancing/endpoint-stats.ts";
import type { BackendDeps, PickedEndpoint, PickedPool } from "../../backends/handler.ts";
import { credentialFields } from "../../backends/auth/index.ts";
import { compileAdmission, type Admit } from "../../backends/admission.ts";
import { HealthRule } from "../../balancing/health.ts";
import { BackendTransformation, type Outgoing } from "../../backends/transformation.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { appendPass } from "../../exchange/cdn-loop.ts";
import type { MaybePromise, RoutedExchange } from "../../exchange/exchange.ts";
import { compilePromptGuards, type PromptGuards } from "../guards/run.ts";
import { readNativePath } from "../shared/native-path.ts";
import { providerOf } from "../providers/index.ts";
import type { Provider, ProviderCall, Wire } from "../providers/provider.ts";
import { fixedVersion } from "../../upstream/http-version.ts";
import { compileAiPolicies, type AiPolicies } from "../policies/index.ts";

export interface Endpoint extends BalancedEndpoint {
  readonly node: ProviderNode;
  readonly provider: Provider;
  readonly record: EndpointStats;
  readonly rule: HealthRule;
  readonly hash: Uint64;
  /** undefined when connections negotiate it. */
  readonly version: "http1" | "http2" | undefined;
  /** Limit of an attempt; Infinity when there is none. */
  readonly timeoutMs: number;
  /** Picks where a call goes. @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused */
  spot(call: ProviderCall, exchange: RoutedExchange): MaybePromise<PickedEndpoint | PickedPool>;
  /** Changes requests in the client's format, before they are translated. */
  readonly transformation: BackendTransformation | undefined;
  /** Decides about each call; undefined when every call is allowed. */
  readonly admit: Admit | undefined;
  /** Returns what the traffic policies of the pool behind the provider do with an attempt; undefined without any. */
  traffic(): Admit | undefined;
  /** Authenticates requests; undefined when the client's own headers do, or nothing. */
  readonly auth: RequestAuth | undefined;
  /** Lower-case names of the header fields that `auth` writes. */
  readonly credentialFields: ReadonlySet<string>;
  /** Returns the call to authenticate. @param call undefined while the kind of call is not known */
  authCall(call: ProviderCall | undefined, exchange: RoutedExchange): AuthCall;
  /** The `ai` block in force for this provider. */
  readonly policies: AiPolicies;
  readonly guards: PromptGuards | undefined;
  /**
   * Returns path and headers of a call.
   * @param out the result of a transformation, which includes the credential; undefined without one
   */
  address(call: ProviderCall, exchange: RoutedExchange, out: Outgoing | undefined): MaybePromise<Addressed>;
}

interface Addressed {
  readonly path: string;
  readonly headers: HeaderList;
}

const NO_FIELDS: ReadonlySet<string> = new Set();

/** @throws ConfigError for a provider that this version does not know */
export function compileEndpoint(node: ProviderNode, deps: BackendDeps): Endpoint {
  const provider = providerOf(node.key);
  if (provider === undefined) throw new ConfigError(`unknown LLM provider "${node.key}"`);
  const isOwnAddress = node.host === "" && node.backend === "";
  // Calls to a vendor's own address always use TLS, even when the configuration does not mention it.
  const tls = node.tls || isOwnAddress;
  const defaults = tls ? create(BackendSettingsSchema, { tls: create(BackendTlsSchema) }) : undefined;
  const behind = node.backend === "" ? undefined : deps.behind(node.backend);
  const settings = deps.settings(node.name, node.settings, { defaults, behind: behind?.settings });
  const place = behind?.destination(settings);
  const http: BackendHttp | undefined = settings.http;
  const usesDefaultCredential = isOwnAddress && settings.auth === undefined;
  const port = portOf(node, provider);
  // One target object for all requests, so that the client finds its pool by identity.
  const fixed = node.backend === "" ? ownTarget({ host: hostOf(node, provider), port }, settings, deps) : undefined;
  // Connection settings are compiled now, because an identity of a workload has to be watched before the first request.
  const connection = deps.connection(settings);
  const others = new Map<string, UpstreamTarget>();
  const targetOf = (call: ProviderCall): UpstreamTarget | undefined => {
    const host = hostOf(node, provider, call);
    if (fixed === undefined || fixed.host === host) return fixed;
    let target = others.get(host);
    if (target === undefined && (target = ownTarget({ host, port }, settings, deps))) others.set(host, target);
    return target;
  };
  const auth = deps.auth(settings.auth ?? (isOwnAddress ? provider.defaultAuth : undefined));
  const location = auth?.chosenHeader;
  const authCall = (call: ProviderCall | undefined, exchange: RoutedExchange): AuthCall => ({
    caller: exchange,
    host: place === undefined ? hostOf(node, provider, call) : place.host,
    connection,
    signingScope: call && provider.signingScope?.(node, call),
  });
  return {
    node,
    provider,
    record: deps.record(node.name),
    rule: new HealthRule(settings.health, deps),
    capacity: 1,
    hash: hashEndpoint(node.name),
    version: fixedVersion(http?.version || place?.version),
    timeoutMs: http?.requestTimeoutMs || Infinity,
    transformation:
      settings.transformation === undefined ? undefined : new BackendTransformation(settings.transformation, deps),
    policies: compileAiPolicies(settings.ai, deps),
    admit: compileAdmission(settings, deps),
    traffic: () => (node.backend === "" ? undefined : deps.traffic(node.backend)),
    auth,
    credentialFields: auth === undefined ? NO_FIELDS : credentialFields(auth.message),
    authCall,
    guards: compilePromptGuards(settings.ai?.promptGuard, deps),
    spot(call, exchange) {
      if (place !== undefined) return place.pick(exchange);
      const target = targetOf(call);
      if (target === undefined) throw new ProxyError("backend_invalid", { detail: "the provider has no address" });
      return { target, state: undefined };
    },
    address(call, exchange, out) {
      const source = out?.headers ?? exchange.requestHeaders;
      const headers =
        UNCHANGED.has(call.wire) || exchange.upgrade !== undefined ? keptHeaders(source) : jsonHeaders(source);
      // Usage has to be read from the answer.
      if (call.wire === "Detect") headers.set("accept-encoding", "identity");
      headers.raw.unshift(
        "host",
        authorityOf(node, { host: hostOf(node, provider, call), port }, settings, out ?? exchange),
      );
      headers.raw.push("cdn-loop", appendPass(exchange.cdnLoop));
      const path = pathOf(node, provider, call, out?.path ?? exchange.target);
      if (settings.auth !== undefined) removeClientKeys(headers, location);
      const finish = (placed: string): Addressed => {
        provider.headers?.(headers, { ...call, credentialHeader: location, usesDefaultCredential }, node);
        return { path: placed, headers };
      };
      if (auth === undefined || (out !== undefined && !auth.writesQuery)) return finish(path);
      // A configured path drops the query that the transformation saw, so a credential in the query is placed again. The
      // headers hold what the transformation left of the others.
      const placed = auth.place(authCall(call, exchange), out === undefined ? headers : new HeaderList(), path);
      return placed instanceof Promise ? placed.then(finish) : finish(placed);
    },
  };
}

/** @param call undefined for the host of most calls @returns "" when there is neither a host nor a default host */
function hostOf(node: ProviderNode, provider: Provider, call?: ProviderCall): string {
  if (node.host !== "") return node.host;
  return (call && provider.host?.(node, call)) ?? provider.defaultHost(node);
}

/** @param host "" when the provider has none */
function ownTarget(
  { host, port }: Pick<UpstreamTarget, "host" | "port">,
  settings: BackendSettings,
  { connection, owner }: BackendDeps,
): UpstreamTarget | undefined {
  return host === "" ? undefined : { ...connection(settings), host, port, unixPath: "", owner };
}

function portOf(node: ProviderNode, provider: Provider): number {
  if (node.host === "" && provider.defaultPort !== undefined) return provider.defaultPort(node);
  return node.port === 0 ? 443 : node.port;
}

/**
 * Returns the provider's host for the Host field. A literal address names no host, so the client's authority is kept.
 */
function authorityOf(
  node: ProviderNode,
  { host, port }: Pick<UpstreamTarget, "host" | "port">,
  settings: BackendSettings,
  client: Pick<RoutedExchange, "host">,
): string {
  if (node.backend !== "" || host === "" || host.includes(":") || /^\d+(?:\.\d+){3}$/.test(host)) return client.host;
  return port === (settings.tls === undefined ? 80 : 443) ? host : `${host}:${port}`;
}

/** A configured path is used as it is, with its query; otherwise the client's query is kept. */
function pathOf(node: ProviderNode, provider: Provider, call: ProviderCall, target: string): string {
  if (node.path !== "") return node.path;
  if (call.wire === "Passthrough" || call.wire === "Detect") return keptPath(node, target);
  const path = provider.path(node, call);
  const start = target.indexOf("?");
  const given = start === -1 ? "" : target.slice(start + 1);
  // The form of a Gemini answer is the gateway's choice: it asks for events and writes what the client asked for.
  const isForm =
    given.includes("alt=") && (call.wire === "Gemini" || readNativePath(target.slice(0, start)) !== undefined);
  // The path names the model of a session, which may be another one.
  const kept = call.wire === "Realtime" ? without(given, /^model(?:=|$)/) : given;
  const accepted = provider.refusedParameters === undefined ? kept : without(kept, provider.refusedParameters);
  const query = isForm ? without(accepted, /^(?:\$|%24)?alt=/i) : accepted;
  return query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

/** Removes the parameters that match. */
function without(query: string, parameters: RegExp): string {
  return query
    .split("&")
    .filter((parameter) => !parameters.test(parameter))
    .join("&");
}

/** Headers in which the official clients send their keys, beside Authorization. */
const CLIENT_KEYS = ["x-api-key", "x-goog-api-key"];

/**
 * Removes keys that the client presents to the gateway: the provider has a credential of its own, and some refuse two.
 * @param location the header of that credential, where one is configured
 */
function removeClientKeys(headers: HeaderList, location: string | undefined): void {
  for (const name of CLIENT_KEYS) if (name !== location) headers.remove(name);
}

/** Keeps the client's path; a configured prefix stands in place of /v1, or in front. */
function keptPath({ pathPrefix }: ProviderNode, target: string): string {
  if (pathPrefix === "") return target;
  return pathPrefix.replace(/\/+$/, "") + target.replace(/^\/v1(?=[/?]|$)/, "");
}

/** Calls whose bodies are not written anew. */
const UNCHANGED: ReadonlySet<Wire> = new Set<Wire>(["Detect", "Passthrough", "Models", "GeminiModels", "Realtime"]);

/** Fields of one connection (RFC 9110 §7.6.1). */
const OF_CONNECTION =
  "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade " +
  "host expect cdn-loop";
/** The messages of a WebSocket are read for their usage, so no extension may compress them. */
const DROPPED: ReadonlySet<string> = new Set(`${OF_CONNECTION} sec-websocket-extensions`.split(" "));
/** Also fields that describe a body which is written anew. */
const DROPPED_WITH_BODY: ReadonlySet<string> = new Set(
  `${OF_CONNECTION} accept-encoding content-length content-encoding content-type content-md5 content-digest repr-digest digest`.split(
    " ",
  ),
);

function jsonHeaders(source: HeaderList): HeaderList {
  const result = keptHeaders(source, DROPPED_WITH_BODY);
  // Ask for an unencoded response, because usage has to be read from it; an encoded one is decoded all the same.
  result.raw.push("content-type", "application/json", "accept-encoding", "identity");
  return result;
}

function keptHeaders(source: HeaderList, dropped: ReadonlySet<string> = DROPPED): HeaderList {
  const { raw } = source;
  const named = nominated(source);
  const result = new HeaderList();
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    if (!dropped.has(name) && named?.has(name) !== true) result.raw.push(raw[at] as string, raw[at + 1] as string);
  }
  return result;
}

/** Returns the names that a Connection field lists. The listener has removed those that the client itself sent. */
function nominated(headers: HeaderList): ReadonlySet<string> | undefined {
  const values = headers.getAll("connection");
  if (values.length === 0) return undefined;
  return new Set(values.flatMap((value) => value.split(",").map((name) => name.trim().toLowerCase())));
}
