/**
 * Resolves a reference to a destination into the key of a Backend, or the reason why there is none. Routes, policies
 * and backends use it. Every look-up is a recorded read of the graph.
 */
import type { DestinationScope } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ReferenceGrant } from "../../../generated/types/gateway-api/referencegrant.ts";
import { Reason } from "../../api/conditions.ts";
import { describeRef, GWPROXY_GROUP, INFERENCE_GROUP, nameKey } from "../../api/refs.ts";
import { backendKey, inferencePoolKey } from "../../ir/keys.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ConditionError, ServiceView } from "../shared/views.ts";
import { isGranted } from "./grants.ts";
import type { AuthCollections } from "./own-auth.ts";

export interface BackendCollections extends AuthCollections {
  readonly services: Readable<ServiceView>;
  /** Every GwBackend that exists, by name. */
  readonly backends: Readable<unknown>;
  readonly pools: PoolNames;
  readonly grants: ReadableIndex<ReferenceGrant>;
  readonly grantMode: GrantMode;
  /** Limits the addresses that static backends may lead to. */
  readonly destinationScope: DestinationScope;
}

/** Every InferencePool that exists, by name; undefined where they are not served. */
export type PoolNames = Readable<unknown> | undefined;

/** A reference in the form that Gateway API routes and policies use. */
export interface BackendReference {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
}

export interface Referrer {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
}

/**
 * Decides which references into another namespace need a ReferenceGrant (GEP-709): those of routes and of the kinds of
 * this API, those of routes only, or none.
 */
export type GrantMode = "route-and-policy" | "route" | "none";

function needsGrant({ group }: Referrer, mode: GrantMode): boolean {
  return group === GWPROXY_GROUP ? mode === "route-and-policy" : mode !== "none";
}

export function resolveBackend(
  ref: BackendReference,
  from: Referrer,
  { services, backends, pools, grants, grantMode }: BackendCollections,
  read: Read,
): string | ConditionError {
  // A GwBackend and an InferencePool have ports of their own, so a port in the reference is ignored. It is read here
  // all the same, because an unread field is reported as unsupported.
  const { port: namedPort } = ref;
  const target = {
    group: ref.group ?? "",
    kind: ref.kind ?? "Service",
    namespace: ref.namespace ?? from.namespace,
    name: ref.name,
  };
  const text = describeRef(target);
  const isService = target.group === "" && target.kind === "Service";
  const isPool = isInferencePool(target) && POOL_REFERRERS.has(from.kind);
  if (!isService && !isPool && !(target.group === GWPROXY_GROUP && target.kind === "GwBackend"))
    return { reason: Reason.InvalidKind, message: `${text}: this kind cannot be a backend` };
  if (needsGrant(from, grantMode) && !isGranted({ from, to: target }, grants, read))
    return {
      reason: Reason.RefNotPermitted,
      message: `${text}: not permitted by any ReferenceGrant in namespace ${target.namespace} for ${from.kind} from ${from.namespace}`,
    };
  if (isPool) return resolvePool(target, pools, read);
  if (!isService) {
    if (read.get(backends, nameKey(target)) !== undefined) return backendKey(target.namespace, target.name);
    return { reason: Reason.BackendNotFound, message: `${text} not found` };
  }
  if (namedPort === undefined) return { reason: Reason.UnsupportedValue, message: `${text}: port is required` };
  const service = read.get(services, nameKey(target));
  if (service === undefined) return { reason: Reason.BackendNotFound, message: `${text} not found` };
  const port = service.ports.find((candidate) => candidate.port === namedPort);
  return port?.key ?? { reason: Reason.BackendNotFound, message: `${text} has no TCP port ${namedPort}` };
}

/** The routes whose requests an endpoint picker understands. */
const POOL_REFERRERS: ReadonlySet<string> = new Set(["HTTPRoute", "GRPCRoute"]);

export function isInferencePool({ group, kind }: { readonly group: string; readonly kind: string }): boolean {
  return group === INFERENCE_GROUP && kind === "InferencePool";
}

/** @returns the key of the pool's Backend */
export function resolvePool(
  target: { readonly namespace: string; readonly name: string },
  pools: PoolNames,
  read: Read,
): string | ConditionError {
  const text = describeRef({ kind: "InferencePool", ...target });
  if (pools === undefined) {
    const message = `${text}: the inference extension is switched off; set GWPROXY_ENABLE_INFERENCE to true`;
    return { reason: Reason.InvalidKind, message };
  }
  if (read.get(pools, nameKey(target)) !== undefined) return inferencePoolKey(target.namespace, target.name);
  return { reason: Reason.BackendNotFound, message: `${text} not found` };
}
