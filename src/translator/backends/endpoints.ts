/**
 * Computes the endpoints behind each port of a Service from its EndpointSlices: which are ready, which are terminating
 * and still serve, and which localities the Service prefers (KEP-2433 topology hints, KEP-4444 `trafficDistribution`).
 * `../graph.ts` uses it.
 *
 * A Service of type ExternalName has its external name as its only address.
 */
import { create } from "@bufbuild/protobuf";
import {
  EndpointSchema,
  EndpointsSchema,
  Locality,
  type Endpoint,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { EndpointSlice, ServiceSpec, SliceEndpoint } from "../../api/core.ts";
import { resourceOf } from "../../ir/encode.ts";
import type { Resource } from "../../ir/resource.ts";
import type { ServiceView, ServicePortView, Distribution } from "../shared/views.ts";

export function distributionOf(spec: ServiceSpec): Distribution {
  const isLocal = spec.internalTrafficPolicy === "Local";
  return {
    preferences: isLocal ? [Locality.NODE] : preferencesOf(spec.trafficDistribution),
    strict: isLocal,
    publishesNotReady: spec.publishNotReadyAddresses === true,
    prefersIPv6: spec.ipFamilies?.[0] === "IPv6",
  };
}

function preferencesOf(distribution: string | undefined): readonly Locality[] {
  switch (distribution) {
    case "PreferClose":
    case "PreferSameZone":
      return [Locality.ZONE];
    case "PreferSameNode":
      return [Locality.ZONE, Locality.NODE];
    default:
      return [];
  }
}

export function translateEndpoints(service: ServiceView, slices: readonly EndpointSlice[]): Resource[] {
  return service.ports.map((port) => {
    const found = endpointsOf(service, port, slices);
    const { strict } = service.distribution;
    const preferences = service.distribution.preferences.length > 0 ? service.distribution.preferences : hintsOf(found);
    const endpoints = found.map((endpoint) => withoutUnasked(endpoint, preferences));
    const message = create(EndpointsSchema, { key: port.key, endpoints, preferences: [...preferences], strict });
    return resourceOf("Endpoints", message);
  });
}

/** Returns the ready addresses behind one port. */
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

/**
 * Uses topology hints only when every ready endpoint has one; otherwise a zone could be left without endpoints by
 * mistake.
 */
function hintsOf(endpoints: readonly Endpoint[]): readonly Locality[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const areHinted = ready.length > 0 && ready.every(({ hintedZones }) => hintedZones.length > 0);
  return areHinted ? [Locality.HINTED_ZONE] : [];
}

/**
 * Removes localities that no preference uses, since a change to them would change the resource without effect. Zones
 * and nodes stay together: a data plane finds its own zone through its node.
 */
function withoutUnasked(endpoint: Endpoint, preferences: readonly Locality[]): Endpoint {
  if (preferences.length === 0) return { ...endpoint, zone: "", node: "", hintedZones: [] };
  return preferences.includes(Locality.HINTED_ZONE) ? endpoint : { ...endpoint, hintedZones: [] };
}

function endpointsOf(
  { externalName, distribution }: ServiceView,
  { name, port }: ServicePortView,
  slices: readonly EndpointSlice[],
): Endpoint[] {
  if (externalName !== undefined)
    return externalName === "" ? [] : [create(EndpointSchema, { address: externalName, port, ready: true })];
  const found = new Map<string, Found>();
  for (const slice of slices) {
    // An EndpointSlice repeats the name of the Service port and holds the target port, with a named targetPort
    // resolved.
    const number = slice.ports?.find((candidate) => (candidate.name ?? "") === name)?.port;
    if (number === undefined) continue;
    const isPreferred = (slice.addressType === "IPv6") === distribution.prefersIPv6;
    for (const entry of slice.endpoints ?? []) {
      for (const [identity, address] of identitiesOf(entry)) {
        const endpoint = endpointOf(entry, { address, port: number }, distribution);
        const key = `${identity} ${number}`;
        const other = found.get(key);
        found.set(key, other === undefined ? { endpoint, isPreferred } : merged(other, { endpoint, isPreferred }));
      }
    }
  }
  // Sort, so that the same endpoints in other slices give an identical resource.
  return [...found.values()].map(({ endpoint }) => endpoint).sort(byAddress);
}

interface Found {
  readonly endpoint: Endpoint;
  /** Its address is of the IP family that the Service lists first. */
  readonly isPreferred: boolean;
}

/**
 * Returns identity and address of each endpoint in an entry. A pod counts as one endpoint, however many addresses it
 * has; an address without a `targetRef` is its own identity.
 */
function identitiesOf({ addresses, targetRef }: SliceEndpoint): readonly (readonly [string, string])[] {
  const [first] = addresses;
  if (targetRef === undefined || first === undefined) return addresses.map((address) => [address, address]);
  return [[`${targetRef.kind ?? ""}/${targetRef.namespace ?? ""}/${targetRef.name ?? first}`, first]];
}

/**
 * Merges two entries of one endpoint. An endpoint can be in two slices for a moment while it moves; it is ready if
 * either slice says so.
 */
function merged(one: Found, other: Found): Found {
  const kept = other.isPreferred && !one.isPreferred ? other : one;
  const { ready: isReady } = one.endpoint.ready ? one.endpoint : other.endpoint;
  const draining = !isReady && (one.endpoint.draining || other.endpoint.draining);
  return { ...kept, endpoint: { ...kept.endpoint, ready: isReady, draining } };
}

function endpointOf(
  { conditions = {}, zone = "", nodeName = "", hints }: SliceEndpoint,
  place: { readonly address: string; readonly port: number },
  { publishesNotReady }: Distribution,
): Endpoint {
  const terminating = conditions.terminating === true;
  const ready = publishesNotReady || ((conditions.ready ?? true) && !terminating);
  return create(EndpointSchema, {
    ...place,
    ready,
    draining: !ready && terminating && (conditions.serving ?? conditions.ready ?? true),
    zone,
    node: nodeName,
    hintedZones: (hints?.forZones ?? []).map(({ name }) => name).sort(),
  });
}

function byAddress(a: Endpoint, b: Endpoint): number {
  if (a.address === b.address) return a.port - b.port;
  return a.address < b.address ? -1 : 1;
}
