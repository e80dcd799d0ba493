/**
 * Services as destinations: one Backend and one Endpoints resource per TCP port, of the same key. Addresses come from
 * EndpointSlices, so that the churn of pods never touches routes; an ExternalName is its own only address.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendSchema,
  EndpointsSchema,
  HttpVersion,
  type Endpoint,
} from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { EndpointSlice, Service } from "../api/core.ts";
import type { ObjectId } from "../api/object.ts";
import { resourceOf } from "../ir/encode.ts";
import { servicePortKey } from "../ir/keys.ts";
import type { Resource } from "../ir/resource.ts";
import { irRef } from "./refs.ts";

export interface ServicePortView {
  readonly name: string;
  readonly port: number;
  readonly key: string;
  readonly version: HttpVersion;
}

export interface ServiceView {
  readonly id: ObjectId;
  readonly ports: readonly ServicePortView[];
  /** Set for type ExternalName. */
  readonly externalName: string | undefined;
}

/** What an appProtocol says of the version (proxying.md 4.1); of others nothing is known. */
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map([
  ["kubernetes.io/h2c", HttpVersion.HTTP2],
  ["http2", HttpVersion.HTTP2],
  ["grpc", HttpVersion.HTTP2],
  ["kubernetes.io/ws", HttpVersion.HTTP1],
  ["kubernetes.io/wss", HttpVersion.HTTP1],
  ["http", HttpVersion.HTTP1],
  ["https", HttpVersion.HTTP1],
]);

export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

export function viewService({ metadata, spec }: Service): ServiceView {
  const namespace = metadata.namespace ?? "";
  return {
    id: { group: "", kind: "Service", namespace, name: metadata.name },
    ports: (spec.ports ?? [])
      .filter((port) => (port.protocol ?? "TCP") === "TCP")
      .map(({ name, port, appProtocol }) => ({
        name: name ?? "",
        port,
        key: servicePortKey(namespace, metadata.name, port),
        version: VERSIONS.get(appProtocol ?? "") ?? HttpVersion.UNSPECIFIED,
      })),
    externalName: spec.type === "ExternalName" ? (spec.externalName ?? "") : undefined,
  };
}

/** The Service that a slice belongs to, as "namespace/name"; empty when it says none. */
export function serviceOfSlice({ metadata }: EndpointSlice): string[] {
  const name = metadata.labels?.[SERVICE_NAME_LABEL];
  return name === undefined ? [] : [`${metadata.namespace ?? ""}/${name}`];
}

export function translateServiceBackends({ id, ports }: ServiceView): Resource[] {
  const hostname = `${id.name}.${id.namespace}.svc.cluster.local`;
  return ports.map(({ key, port, version }) =>
    resourceOf(
      "Backend",
      create(BackendSchema, { key, object: irRef(id), kind: { case: "service", value: { hostname, port, version } } }),
    ),
  );
}

export function translateEndpoints(service: ServiceView, slices: readonly EndpointSlice[]): Resource[] {
  return service.ports.map((port) =>
    resourceOf("Endpoints", create(EndpointsSchema, { key: port.key, endpoints: endpointsOf(service, port, slices) })),
  );
}

/** The ready addresses behind one port. */
export function addressesOf(
  service: ServiceView,
  portKey: string,
  slices: readonly EndpointSlice[],
): { readonly host: string; readonly port: number }[] {
  const port = service.ports.find(({ key }) => key === portKey);
  if (port === undefined) return [];
  return endpointsOf(service, port, slices).flatMap(({ address, port: number, ready }) =>
    ready ? [{ host: address, port: number }] : [],
  );
}

type PlainEndpoint = Pick<Endpoint, "address" | "port" | "ready">;

function endpointsOf(
  { externalName }: ServiceView,
  { name, port }: ServiceView["ports"][number],
  slices: readonly EndpointSlice[],
): PlainEndpoint[] {
  if (externalName !== undefined) return externalName === "" ? [] : [{ address: externalName, port, ready: true }];
  const found = new Map<string, PlainEndpoint>();
  for (const slice of slices) {
    // Slices repeat the name of the Service's port and hold the number behind it, a named targetPort resolved.
    const number = slice.ports?.find((candidate) => (candidate.name ?? "") === name)?.port;
    if (number === undefined) continue;
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      const ready = conditions?.ready ?? true;
      for (const address of addresses) {
        const key = `${address} ${number}`;
        // An address can be in two slices for a moment while it moves; ready in one of them is ready.
        found.set(key, { address, port: number, ready: ready || found.get(key)?.ready === true });
      }
    }
  }
  // A stable order, so that the same endpoints in other slices are the same resource.
  return [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}
