/**
 * Resolves a reference to a destination into the key of a Backend, or the reason why there is none. Routes, policies
 * and backends use it. Every look-up is a recorded read of the graph.
 */
import type { DestinationScope } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ReferenceGrant } from "../../../generated/types/gateway-api/referencegrant.ts";
import { Reason } from "../../api/conditions.ts";
import { describeRef, GWPROXY_GROUP, nameKey } from "../../api/refs.ts";
import { backendKey } from "../../ir/keys.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { ConditionError, ServiceView } from "../shared/views.ts";
import { isGranted } from "./grants.ts";
import type { AuthCollections } from "./own-auth.ts";

export interface BackendCollections extends AuthCollections {
  readonly services: Readable<ServiceView>;
  /** Every GwBackend that exists, by name. */
  readonly backends: Readable<unknown>;
  readonly grants: ReadableIndex<ReferenceGrant>;
  readonly grantMode: GrantMode;
  /** Limits the addresses that static backends may lead to. */
  readonly destinationScope: DestinationScope;
}

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
  { services, backends, grants, grantMode }: BackendCollections,
  read: Read,
): string | ConditionError {
  // A GwBackend has its own port, so a port in the reference is ignored. It is read here all the same, because an
  // unread field is reported as unsupported.
  const { port: namedPort } = ref;
  const target = {
    group: ref.group ?? "",
    kind: ref.kind ?? "Service",
    namespace: ref.namespace ?? from.namespace,
    name: ref.name,
  };
  const text = describeRef(target);
  const isService = target.group === "" && target.kind === "Service";
  if (!isService && !(target.group === GWPROXY_GROUP && target.kind === "GwBackend"))
    return { reason: Reason.InvalidKind, message: `${text}: this kind cannot be a backend` };
  if (needsGrant(from, grantMode) && !isGranted({ from, to: target }, grants, read))
    return {
      reason: Reason.RefNotPermitted,
      message: `${text}: not permitted by any ReferenceGrant in namespace ${target.namespace} for ${from.kind} from ${from.namespace}`,
    };
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
