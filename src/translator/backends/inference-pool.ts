/**
 * Translates InferencePools, the model servers of one's own behind an endpoint picker, into destinations: one Backend
 * and one Endpoints resource under the same key. `declare-pools.ts` uses it.
 *
 * Endpoints are the Pods that the selector chooses, one for each target port. Files without Pods may hold them in
 * EndpointSlices with the labels of the selector. In a cluster EndpointSlices do not count: they carry the labels of
 * their Service, which say nothing about Pods.
 */
import { create } from "@bufbuild/protobuf";
import type { InferencePool } from "../../../generated/types/inference/inferencepool.ts";
import {
  BackendSchema,
  EndpointSchema,
  EndpointsSchema,
  ExternalServiceSchema,
  type Endpoint,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { Reason } from "../../api/conditions.ts";
import type { EndpointSlice, Pod, SliceEndpoint } from "../../api/core.ts";
import { objectId } from "../../api/object.ts";
import { describeRef } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { inferencePoolKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { selectByLabels } from "../references/label-index.ts";
import { irRef } from "../references/refs.ts";
import type { ConditionError, PoolView, ServiceView } from "../shared/views.ts";

export interface PoolMembers {
  readonly podsByLabels: ReadableIndex<Pod>;
  /** Unset in a cluster, where Pods alone count. */
  readonly slicesByLabels: ReadableIndex<EndpointSlice> | undefined;
}

export function viewPool(pool: InferencePool, services: Readable<ServiceView>, read: Read): PoolView {
  const { endpointPickerRef, selector, targetPorts } = pool.spec;
  const id = objectId(pool);
  return {
    id,
    generation: pool.metadata.generation ?? 0,
    key: inferencePoolKey(id.namespace, id.name),
    labels: selector.matchLabels,
    ports: targetPorts.map(({ number }) => number),
    failOpen: endpointPickerRef.failureMode === "FailOpen",
    picker: resolvePicker(endpointPickerRef, id.namespace, services, read),
  };
}

/** The picker is a Service of the pool's own namespace. An external name could lead anywhere, so it is refused. */
function resolvePicker(
  { group = "", kind = "Service", name, port }: InferencePool["spec"]["endpointPickerRef"],
  namespace: string,
  services: Readable<ServiceView>,
  read: Read,
): PoolView["picker"] {
  const fail = (message: string): { readonly error: ConditionError } => ({
    error: { reason: Reason.InvalidExtensionRef, message },
  });
  const text = describeRef({ kind, namespace, name });
  if (group !== "" || kind !== "Service") return fail(`${text}: an endpoint picker has to be a Service`);
  const service = read.get(services, `${namespace}/${name}`);
  if (service === undefined) return fail(`${text} not found`);
  if (service.externalName !== undefined) return fail(`${text} is of type ExternalName, which is not allowed here`);
  const found = service.ports.find((candidate) => candidate.port === port?.number);
  if (found === undefined) return fail(`${text} has no TCP port ${port?.number ?? ""}`.trimEnd());
  return { backend: found.key, isPlaintext: found.isPlaintext };
}

export function translatePool({ id, key, failOpen, picker }: PoolView): Resource {
  const isResolved = !("error" in picker);
  const value = {
    picker: create(
      ExternalServiceSchema,
      isResolved ? { place: { case: "backend", value: picker.backend } } : { invalidReason: picker.error.message },
    ),
    failOpen,
    unverifiedTls: isResolved && !picker.isPlaintext,
  };
  return resourceOf(
    "Backend",
    create(BackendSchema, { key, object: irRef(id), kind: { case: "inferencePool", value } }),
  );
}

export function translatePoolEndpoints(
  { id, key, labels, ports }: PoolView,
  { podsByLabels, slicesByLabels }: PoolMembers,
  read: Read,
): Resource {
  const members = selectByLabels(read, podsByLabels, id.namespace, labels).flatMap(memberOfPod);
  if (slicesByLabels !== undefined)
    for (const { endpoints = [] } of selectByLabels(read, slicesByLabels, id.namespace, labels))
      members.push(...endpoints.flatMap(membersOfSlice));
  const byAddress = new Map(members.map((member) => [member.address, member]));
  // Sort, so that the same endpoints in another order give an identical resource.
  const sorted = [...byAddress.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
  const endpoints = sorted.flatMap((member): Endpoint[] =>
    ports.map((port) => create(EndpointSchema, { ...member, port })),
  );
  return resourceOf("Endpoints", create(EndpointsSchema, { key, endpoints }));
}

interface Member {
  readonly address: string;
  readonly ready: boolean;
  /** Terminating and still able to serve: the picker may name it until it is gone. */
  readonly draining: boolean;
}

/** A Pod of a file may leave out its conditions, which the kubelet always sets; it then counts as ready. */
function memberOfPod({ metadata, status = {} }: Pod): Member[] {
  const { podIP = "", phase, conditions } = status;
  if (podIP === "" || phase === "Succeeded" || phase === "Failed") return [];
  const isReady =
    conditions === undefined || conditions.some(({ type, status }) => type === "Ready" && status === "True");
  const isTerminating = metadata.deletionTimestamp !== undefined;
  return [{ address: podIP, ready: isReady && !isTerminating, draining: isReady && isTerminating }];
}

function membersOfSlice({ addresses, conditions = {} }: SliceEndpoint): Member[] {
  const isTerminating = conditions.terminating === true;
  const ready = (conditions.ready ?? true) && !isTerminating;
  const draining = isTerminating && (conditions.serving ?? conditions.ready ?? true);
  return addresses.map((address) => ({ address, ready, draining }));
}
