/**
 * Finds the `auth` block with which calls of the gateway to a backend are authenticated: that of the GwBackend itself,
 * else that of a GwPolicy on it. Token endpoints must not need a token themselves.
 */
import type { BackendAuth } from "../../../generated/types/backend-auth.ts";
import type { GwBackend } from "../../../generated/types/backend.ts";
import type { GwPolicy } from "../../../generated/types/policy.ts";
import type { Service } from "../../api/core.ts";
import { nameKey } from "../../api/refs.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { BackendReference } from "./backend-refs.ts";
import { policiesOn } from "./policies-on-backends.ts";

export interface AuthCollections {
  readonly backendObjects: Readable<GwBackend>;
  readonly serviceObjects: Readable<Service>;
  /** Policies with a `backend` block, indexed by indexBackendPolicies. */
  readonly policiesByBackend: ReadableIndex<GwPolicy>;
}

/** @param namespace in which a reference without a namespace is looked up */
export function ownAuthOf(
  { kind, namespace: named, name, port }: BackendReference,
  namespace: string,
  { backendObjects, serviceObjects, policiesByBackend }: AuthCollections,
  read: Read,
): BackendAuth | undefined {
  const target = { namespace: named ?? namespace, name };
  const isBackend = kind === "GwBackend";
  const backend = isBackend ? read.get(backendObjects, nameKey(target)) : undefined;
  const inline = backend?.spec.policies?.auth;
  if (inline !== undefined) return inline;
  const { metadata } = (isBackend ? backend : read.get(serviceObjects, nameKey(target))) ?? {};
  const governed = {
    kind: isBackend ? ("GwBackend" as const) : ("Service" as const),
    ...target,
    section: isBackend ? "" : String(port ?? ""),
    labels: metadata?.labels ?? {},
  };
  const policies = policiesOn(governed, policiesByBackend, read);
  return policies.find(({ value }) => value.spec.backend?.auth !== undefined)?.value.spec.backend?.auth;
}
