/**
 * Finds the CRDs of the Gateway API and of its inference extension in the Go module cache and folds them into
 * components, for generate.ts.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import {
  GATEWAY_API_KINDS,
  GATEWAY_API_MODULE,
  GATEWAY_API_VERSION,
  INFERENCE_KINDS,
  INFERENCE_MODULE,
  INFERENCE_VERSION,
  type UpstreamKind,
} from "./gateway-api-version.ts";
import { refold } from "./refold.ts";
import { mapSchema, type Component, type Reference, type Schema } from "./schema.ts";

export interface UpstreamCrd {
  readonly kind: string;
  readonly group: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly types: string;
  /** Folder of the generated types. */
  readonly folder: UpstreamModule["folder"];
  readonly versions: readonly string[];
  readonly schema: Schema;
}

interface CrdFile {
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

/** Chosen names of upstream shapes by kind and path, so that an upstream update does not rename a type. */
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  HTTPRoute: {
    "spec.parentRefs": "HTTPRouteParentRef",
    "spec.rules": "HTTPRouteRule",
    "spec.rules.matches": "HTTPRouteMatch",
    "spec.rules.matches.path": "HTTPPathMatch",
    "spec.rules.matches.headers": "HTTPHeaderMatch",
    "spec.rules.matches.queryParams": "HTTPQueryParamMatch",
    "spec.rules.filters": "HTTPRouteFilter",
    "spec.rules.filters.requestHeaderModifier": "HTTPHeaderFilter",
    "spec.rules.filters.requestHeaderModifier.add": "HTTPHeader",
    "spec.rules.filters.requestRedirect.path": "HTTPPathModifier",
    "spec.rules.filters.requestMirror.backendRef": "HTTPMirrorBackendRef",
    "spec.rules.filters.extensionRef": "HTTPExtensionRef",
    "spec.rules.filters.requestRedirect": "HTTPRequestRedirectFilter",
    "spec.rules.filters.urlRewrite": "HTTPURLRewriteFilter",
    "spec.rules.backendRefs": "HTTPBackendRef",
    "spec.rules.timeouts": "HTTPRouteTimeouts",
    "spec.rules.retry": "HTTPRouteRetry",
  },
  Gateway: {
    "spec.listeners": "GatewayListener",
    "spec.listeners.tls": "GatewayListenerTLS",
    "spec.listeners.allowedRoutes": "GatewayAllowedRoutes",
    "spec.listeners.allowedRoutes.namespaces": "GatewayRouteNamespaces",
    "spec.listeners.tls.certificateRefs": "GatewayCertificateRef",
    "spec.listeners.allowedRoutes.kinds": "GatewayRouteKind",
    "status.listeners": "GatewayListenerStatus",
  },
  ReferenceGrant: { "spec.from": "ReferenceGrantFrom", "spec.to": "ReferenceGrantTo" },
};

/**
 * Fields beyond the standard channel that the gateway supports, by kind
 * (docs/adr/0009-a-field-of-the-experimental-channel.md). Users of the standard CRDs cannot set them.
 */
const EXPERIMENTAL_FIELDS: Readonly<Record<string, readonly string[]>> = { HTTPRoute: ["spec.rules.retry"] };

interface UpstreamModule {
  /** Module and version. */
  readonly source: string;
  /** Folder of the CRDs in the module. */
  readonly crds: string;
  readonly folder: "gateway-api" | "inference";
  readonly kinds: readonly UpstreamKind[];
}

const GATEWAY_API: UpstreamModule = {
  source: `${GATEWAY_API_MODULE}@${GATEWAY_API_VERSION}`,
  crds: "config/crd/standard",
  folder: "gateway-api",
  kinds: GATEWAY_API_KINDS,
};

export const UPSTREAM_MODULES: readonly UpstreamModule[] = [
  GATEWAY_API,
  {
    source: `${INFERENCE_MODULE}@${INFERENCE_VERSION}`,
    crds: "config/crd/bases",
    folder: "inference",
    kinds: INFERENCE_KINDS,
  },
];

/** Returns the folder of the CRDs, and downloads the module when the cache does not have it. */
export function crdDirectory({ source, crds }: UpstreamModule = GATEWAY_API): string {
  const output = execFileSync("go", ["mod", "download", "-json", source], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/local/go/bin` },
  });
  // The cast is safe: the format of `go mod download -json` is documented and stable.
  return `${(JSON.parse(output) as { Dir: string }).Dir}/${crds}`;
}

export function readUpstream(): UpstreamCrd[] {
  return UPSTREAM_MODULES.flatMap((module) => readModule(module, crdDirectory(module)));
}

function readModule({ kinds, folder }: UpstreamModule, directory: string): UpstreamCrd[] {
  return kinds.map(({ kind, file, types }) => {
    const { spec, served, version } = readCrd(`${directory}/${file}`);
    const added = EXPERIMENTAL_FIELDS[kind] ?? [];
    const experimental = added.length === 0 ? version : readCrd(`${directory}/../experimental/${file}`).version;
    return {
      kind,
      group: spec.group,
      plural: spec.names.plural,
      namespaced: spec.scope === "Namespaced",
      types,
      folder,
      versions: served.map(({ name }) => name),
      schema: added.reduce(
        (schema, path) => graft(schema, experimental.schema.openAPIV3Schema, path.split(".")),
        version.schema.openAPIV3Schema,
      ),
    };
  });
}

interface ReadCrd {
  readonly spec: CrdFile["spec"];
  readonly served: CrdFile["spec"]["versions"];
  /** The version to read, which is v1 when it is served. */
  readonly version: CrdFile["spec"]["versions"][number];
}

function readCrd(path: string): ReadCrd {
  // An upstream file of another shape fails on the first member that is read.
  const { spec } = parse(readFileSync(path, "utf8")) as CrdFile;
  const served = spec.versions.filter((version) => version.served);
  const version = served.find(({ name }) => name === "v1") ?? served[0];
  if (version === undefined) throw new Error(`${path}: no version is served`);
  return { spec, served, version };
}

/** Adds one field of another schema. @param path field names; the items of a list do not count */
function graft(schema: Schema, other: Schema, path: readonly string[]): Schema {
  if (schema.items !== undefined && other.items !== undefined)
    return { ...schema, items: graft(schema.items, other.items, path) };
  const [name = "", ...rest] = path;
  const [from, own] = [other.properties?.[name], schema.properties?.[name]];
  if (from === undefined || (rest.length > 0 && own === undefined)) throw new Error(`upstream has no field ${name}`);
  const child = own === undefined ? from : graft(own, from, rest);
  return { ...schema, properties: { ...schema.properties, [name]: child } };
}

export function foldUpstream(crd: UpstreamCrd): Component[] {
  return refold(crd.kind, crd.types, crd.schema, NAMES[crd.kind] ?? {});
}

/** Removes the descriptions of an upstream kind from generated files, because their text is not ours to distribute. */
export function withoutDescriptions(component: Component): Component {
  const schema = mapSchema(component.schema, (part) => {
    const copy = { ...part };
    delete copy.description;
    return copy;
  });
  return { ...component, schema };
}

/** Targets of upstream references by component, which the upstream schemas do not state. */
const REFERENCES: Readonly<Record<string, Reference>> = {
  HTTPBackendRef: { kinds: ["/Service", "gwproxy.dev/GwBackend"], grant: true },
  HTTPMirrorBackendRef: { kinds: ["/Service", "gwproxy.dev/GwBackend"], grant: true },
  HTTPRouteParentRef: { kinds: ["gateway.networking.k8s.io/Gateway"], grant: false },
  GatewayCertificateRef: { kinds: ["/Secret"], grant: true },
};

export function withReferences(component: Component): Component {
  const reference = REFERENCES[component.name];
  if (reference === undefined) return component;
  return { ...component, schema: { ...component.schema, "x-gw-ref": reference } };
}
