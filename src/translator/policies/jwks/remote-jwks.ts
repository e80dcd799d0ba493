/**
 * Resolves JWKS that other servers publish, for issuers of tokens in GwPolicies (`../content.ts`) and in GwBackends
 * (`../../graph.ts`).
 *
 * The request follows from the objects alone: the URL, and the TLS settings of the referenced backend. The translator
 * does not fetch anything itself. The fetched document comes back as an input, under the key of the request, and
 * recomputes the policies that read it.
 */
import { hash } from "node:crypto";
import { create, toJsonString } from "@bufbuild/protobuf";
import type { BackendTLSPolicy } from "../../../../generated/types/gateway-api/backendtlspolicy.ts";
import type { GwPolicy } from "../../../../generated/types/policy.ts";
import type { RemoteJwks } from "../../../../generated/types/traffic-authentication.ts";
import {
  BackendTlsSchema,
  DestinationScope,
  type BackendTls,
  type JwtKey,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { nameKey } from "../../../api/refs.ts";
import type { Entry, Readable, ReadableIndex } from "../../../lib/collections/collection.ts";
import type { Read } from "../../../lib/collections/graph.ts";
import { parseDuration, timerMs } from "../../../lib/time/duration.ts";
import type { JwksDocument, JwksRequest } from "../../../sources/remote/documents.ts";
import { resolveBackend, type BackendCollections, type Referrer } from "../../references/backend-refs.ts";
import { translateTlsPolicy } from "../../backends/backend-tls/content.ts";
import { tlsPolicyOn } from "../../backends/backend-tls/targets.ts";
import { translateTls } from "../../backends/settings/tls.ts";
import { checkDestination } from "../../backends/static.ts";
import { withoutBrackets } from "../../../lib/network/local-address.ts";
import { parseJwks } from "./jwks.ts";
import { parseOrigin } from "../shared/external-service.ts";
import type { RemoteJwksRequest, RemoteKeys } from "../shared/remote-keys.ts";
import { policiesOn, type GovernedBackend } from "../../references/policies-on-backends.ts";
import { SecretReader, type SecretCollections } from "../../references/secrets.ts";

export interface JwksCollections extends SecretCollections, BackendCollections {
  readonly documents: Readable<JwksDocument>;
  /** BackendTLSPolicies, indexed by targetNames. */
  readonly tlsPoliciesByTarget: ReadableIndex<BackendTLSPolicy>;
}

interface Server extends GovernedBackend {
  readonly kind: "Service" | "GwBackend";
  readonly inline: GwPolicy["spec"]["backend"];
  /** The host in URL syntax, with brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
  readonly place: RemoteJwksRequest["server"];
}

const DEFAULT_CACHE = "5m";

/** Reads the JWKS of one object, and collects the requests for them. */
export class JwksReader implements RemoteKeys {
  readonly #collections: JwksCollections;
  readonly #read: Read;
  readonly #from: Referrer;
  readonly #requests = new Map<string, RemoteJwksRequest>();

  /** @param from the object with the references; a grant has to name its kind */
  constructor(collections: JwksCollections, read: Read, from: Referrer) {
    this.#collections = collections;
    this.#read = read;
    this.#from = from;
  }

  get requests(): RemoteJwksRequest[] {
    return [...this.#requests.values()];
  }

  /** @returns the keys, or why there are none */
  keys(remote: RemoteJwks): readonly JwtKey[] | string {
    const request = this.#requestFor(remote);
    if (typeof request === "string") return request;
    const earlier = this.#requests.get(request.key);
    const cacheMs = Math.min(request.cacheMs, earlier?.cacheMs ?? Infinity);
    this.#requests.set(request.key, { ...request, cacheMs });
    const document = this.#read.get(this.#collections.documents, request.key);
    if (document === undefined) return `the keys at ${request.url} have not been fetched yet`;
    if ("error" in document) return `the keys at ${request.url} cannot be fetched: ${document.error}`;
    return parseJwks(document.text);
  }

  #requestFor({ url, backendRef, jwksPath, cacheDuration }: RemoteJwks): RemoteJwksRequest | string {
    const cacheMs = parseDuration(cacheDuration ?? DEFAULT_CACHE) ?? 0;
    if (backendRef === undefined) return requestForUrl(url ?? "", cacheMs);
    const server = this.#server(backendRef);
    if (typeof server === "string") return server;
    const policies = policiesOn(server, this.#collections.policiesByBackend, this.#read);
    // A tunnel is meant to stand between; fetching past it would be worse than having no keys.
    if (
      [server.inline, ...policies.map(({ value }) => value.spec.backend)].some((block) => block?.tunnel !== undefined)
    )
      return `${server.kind} ${server.namespace}/${server.name} cannot serve keys: they are not fetched through a tunnel`;
    const tls = this.#tlsOf(server, policies);
    const path = (jwksPath ?? "").replace(/^\/*/, "/");
    return {
      ...requestOf(`${server.host}:${server.port}${path}`, tls, cacheMs, server.place),
      ...limitsOf(server, policies),
    };
  }

  #server(ref: NonNullable<RemoteJwks["backendRef"]>): Server | string {
    const { serviceObjects, backendObjects } = this.#collections;
    const found = resolveBackend(ref, this.#from, this.#collections, this.#read);
    if (typeof found !== "string") return found.message;
    const target = { namespace: ref.namespace ?? this.#from.namespace, name: ref.name };
    const name = nameKey(target);
    if (ref.kind === "GwBackend") {
      const { metadata, spec } = this.#read.get(backendObjects, name) ?? {};
      if (spec?.static === undefined) return `GwBackend ${name} cannot serve keys: only one with static can`;
      const { host = "localhost", port = 80, unixPath = "" } = spec.static;
      const { destinationScope } = this.#collections;
      const error = checkDestination(spec.static, destinationScope);
      if (error !== undefined) return `GwBackend ${name} cannot serve keys: ${error.message}`;
      const place = {
        host: withoutBrackets(host),
        port,
        unixPath,
        ...(destinationScope === DestinationScope.REMOTE ? { isRemote: true } : {}),
      };
      const own = { host, port, place, section: "", labels: metadata?.labels ?? {}, inline: spec.policies };
      return { kind: "GwBackend", ...target, ...own };
    }
    const labels = this.#read.get(serviceObjects, name)?.metadata.labels ?? {};
    const port = ref.port ?? 0;
    const host = `${target.name}.${target.namespace}.svc.cluster.local`;
    const own = { host, port, place: { service: name, portKey: found }, section: String(port), labels };
    return { kind: "Service", ...target, ...own, inline: undefined };
  }

  /**
   * Returns the TLS settings of the server: those of the GwBackend itself, else of a GwPolicy on it, else of a
   * BackendTLSPolicy.
   */
  #tlsOf(server: Server, policies: readonly Entry<GwPolicy>[]): BackendTls | undefined {
    const { kind, namespace, name, section = "" } = server;
    const secrets = new SecretReader(this.#collections, this.#read, namespace);
    // Errors of these settings are reported on their own object.
    const translate = (block: Server["inline"]): BackendTls | undefined =>
      block?.tls === undefined ? undefined : translateTls(block.tls, secrets, () => undefined);
    const inline = translate(server.inline);
    if (inline !== undefined) return inline;
    const attached = policies.find(({ value }) => value.spec.backend?.tls !== undefined);
    if (attached !== undefined) return translate(attached.value.spec.backend);
    const service = this.#read.get(this.#collections.services, nameKey({ namespace, name }));
    const port = kind === "Service" ? service?.ports.find((each) => String(each.port) === section) : undefined;
    const ports = [section, port?.name ?? ""].filter((one) => one !== "");
    const policy = tlsPolicyOn({ kind, namespace, name, ports }, this.#collections.tlsPoliciesByTarget, this.#read);
    return policy === undefined ? undefined : translateTlsPolicy(policy, this.#collections, this.#read).tls;
  }
}

/** Returns the timeouts. Each block comes from the most specific level that sets it, as for calls of the backend. */
function limitsOf(
  { inline }: Server,
  policies: readonly Entry<GwPolicy>[],
): Pick<JwksRequest, "connectTimeoutMs" | "timeoutMs"> {
  const blocks = [inline, ...policies.map(({ value }) => value.spec.backend)];
  const { connectTimeout } = blocks.find((block) => block?.tcp !== undefined)?.tcp ?? {};
  const { requestTimeout } = blocks.find((block) => block?.http !== undefined)?.http ?? {};
  return {
    ...(connectTimeout === undefined ? {} : { connectTimeoutMs: timerMs(connectTimeout) }),
    ...(requestTimeout === undefined ? {} : { timeoutMs: timerMs(requestTimeout) }),
  };
}

function requestForUrl(url: string, cacheMs: number): RemoteJwksRequest | string {
  const origin = parseOrigin(url);
  if (origin === undefined) return `"${url}" is not an http or https URL with a port from 1 to 65535`;
  const { host, port, tls, path } = origin;
  const address = url.slice(url.indexOf("//") + 2) + (path === "" ? "/" : "");
  return requestOf(address, tls ? create(BackendTlsSchema) : undefined, cacheMs, { host, port, unixPath: "" });
}

/**
 * Builds a request whose key covers the URL and the TLS settings, so that policies share a document only when they
 * trust the same server.
 */
function requestOf(
  address: string,
  tls: BackendTls | undefined,
  cacheMs: number,
  server: RemoteJwksRequest["server"],
): RemoteJwksRequest {
  const url = `${tls === undefined ? "http" : "https"}://${address}`;
  const settings = tls === undefined ? "" : toJsonString(BackendTlsSchema, tls);
  return { key: hash("sha256", `${url}\n${settings}`), url, tls, cacheMs, server };
}
