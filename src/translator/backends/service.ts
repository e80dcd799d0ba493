/**
 * Translates Services into destinations: one Backend and one Endpoints resource per TCP port, under the same key.
 * `../graph.ts` uses it. Addresses come from EndpointSlices (endpoints.ts), so that the churn of pods never changes
 * routes.
 */
import { create } from "@bufbuild/protobuf";
import { BackendSchema, HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { EndpointSlice, Service } from "../../api/core.ts";
import { resourceOf } from "../../ir/encode.ts";
import { servicePortKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import { distributionOf } from "./endpoints.ts";
import type { ServiceView } from "../shared/views.ts";
import { irRef } from "../references/refs.ts";

/** `appProtocol` of HTTP/2 without TLS (GEP-1911). */
const H2C = "kubernetes.io/h2c";

/** HTTP version that an `appProtocol` implies (GEP-1911); other values imply none. */
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map([
  [H2C, HttpVersion.HTTP2],
  ["http2", HttpVersion.HTTP2],
  ["grpc", HttpVersion.HTTP2],
  ["kubernetes.io/ws", HttpVersion.HTTP1],
  ["kubernetes.io/wss", HttpVersion.HTTP1],
  ["http", HttpVersion.HTTP1],
  ["https", HttpVersion.HTTP1],
]);

/** `appProtocol` of an agent that speaks the Agent2Agent protocol. */
const A2A = "gwproxy.dev/a2a";

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

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
        isA2a: appProtocol === A2A,
        isPlaintext: appProtocol === H2C,
        version: VERSIONS.get(appProtocol ?? "") ?? HttpVersion.UNSPECIFIED,
      })),
    externalName: spec.type === "ExternalName" ? (spec.externalName ?? "") : undefined,
    distribution: distributionOf(spec),
  };
}

/** Returns the Service that a slice belongs to, as "namespace/name", or nothing when the slice has no such label. */
export function serviceOfSlice({ metadata }: EndpointSlice): string[] {
  const name = metadata.labels?.[SERVICE_NAME_LABEL];
  return name === undefined ? [] : [`${metadata.namespace ?? ""}/${name}`];
}

export function translateServiceBackends({ id, ports }: ServiceView): Resource[] {
  const hostname = `${id.name}.${id.namespace}.svc.cluster.local`;
  return ports.map(({ key, port, version, isA2a }) =>
    resourceOf(
      "Backend",
      create(BackendSchema, {
        key,
        object: irRef(id),
        kind: { case: "service", value: { hostname, port, version, a2a: isA2a } },
      }),
    ),
  );
}
