/**
 * Computes which Gateways need each GwBackend and Service. `../graph.ts` uses it. A Gateway needs a destination when a
 * route or policy on it names the destination, or when another destination on it needs it, directly or through a policy
 * (such as a proxy that connections are tunnelled through).
 *
 * Needs are followed without recursion: from the GwBackends that routes and policies name, then from the InferencePools
 * that routes or those GwBackends name, then from the Services that any of them names.
 */
import type { GwBackend } from "../../../generated/types/backend.ts";
import type { GwPolicy } from "../../../generated/types/policy.ts";
import type { Service } from "../../api/core.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Collection, Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Graph, Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import type { InferencePool } from "../../../generated/types/inference/inferencepool.ts";
import type { TranslatedBackend } from "../backends/translate.ts";
import type { PolicyContent } from "./content.ts";
import { policiesOn, type GovernedBackend } from "../references/policies-on-backends.ts";
import { gatewaysByUse, union, type BackendVisibility, type ServiceVisibility } from "../references/visibility.ts";
import type { PoolView, ServiceView } from "../shared/views.ts";

export interface DestinationVisibilityOptions {
  readonly backends: Collection<TranslatedBackend>;
  readonly pools: Collection<PoolView>;
  readonly services: Collection<ServiceView>;
  readonly backendObjects: Readable<GwBackend>;
  readonly poolObjects: Readable<InferencePool>;
  readonly serviceObjects: Readable<Service>;
  /** Gateways of routes and policies, by the keys of the Backends that they name. */
  readonly callers: readonly ReadableGroups[];
  readonly contents: Readable<PolicyContent>;
  readonly policiesByBackend: ReadableIndex<GwPolicy>;
}

export interface DestinationVisibility {
  readonly poolVisibility: Collection<BackendVisibility>;
  readonly backendVisibility: Collection<BackendVisibility>;
  readonly serviceVisibility: Collection<ServiceVisibility>;
}

export function declareDestinationVisibility(
  graph: Graph,
  options: DestinationVisibilityOptions,
): DestinationVisibility {
  const { backends, pools, services, callers } = options;
  const backendUsers = graph.derive("backend users", backends, (name, { key, uses }, read): BackendVisibility => ({
    gateways: gatewaysOf(callers, key, read),
    uses: union([uses, usesOfPolicies("GwBackend", read.get(options.backendObjects, name), { options, read })]),
  }));
  const byBackends = backendUsers.groups(({ uses, gateways }) => gatewaysByUse(uses, gateways));
  const poolVisibility = graph.derive("pool visibility", pools, (name, { key, picker }, read): BackendVisibility => ({
    gateways: gatewaysOf([...callers, byBackends], key, read),
    uses: union([
      "error" in picker ? [] : [picker.backend],
      usesOfPolicies("InferencePool", read.get(options.poolObjects, name), { options, read }),
    ]),
  }));
  const byPools = poolVisibility.groups(({ uses, gateways }) => gatewaysByUse(uses, gateways));
  const serviceUsers = graph.derive(
    "service users",
    services,
    (name, { ports }, read): BackendVisibility | undefined => {
      const uses = usesOfPolicies("Service", read.get(options.serviceObjects, name), { options, read });
      if (uses.length === 0) return undefined;
      return {
        gateways: union(ports.map(({ key }) => gatewaysOf([...callers, byBackends, byPools], key, read))),
        uses,
      };
    },
  );
  const byServices = serviceUsers.groups(({ uses, gateways }) => gatewaysByUse(uses, gateways));
  const users = [...callers, byBackends, byPools, byServices];
  return {
    poolVisibility,
    backendVisibility: graph.derive("backend visibility", backends, (_key, { key, uses }, read): BackendVisibility => ({
      gateways: gatewaysOf(users, key, read),
      uses,
    })),
    serviceVisibility: graph.derive(
      "service visibility",
      services,
      (_key, { ports }, read): ServiceVisibility =>
        new Map(ports.map(({ key }) => [key, gatewaysOf(users, key, read)])),
    ),
  };
}

function gatewaysOf(groups: readonly ReadableGroups[], key: string, read: Read): string[] {
  return union(groups.map((each) => read.members(each, key)));
}

/** Returns the Backends that policies on a destination need on every Gateway that has the destination. */
function usesOfPolicies(
  kind: GovernedBackend["kind"],
  object: KubeObject | undefined,
  { options, read }: { readonly options: DestinationVisibilityOptions; readonly read: Read },
): string[] {
  if (object === undefined) return [];
  const { namespace = "", name, labels = {} } = object.metadata;
  const policies = policiesOn({ kind, namespace, name, section: undefined, labels }, options.policiesByBackend, read);
  // The traffic settings of a policy run for a pool, and for no other destination.
  const field = kind === "InferencePool" ? "uses" : "backendUses";
  return union(policies.map(({ key }) => read.get(options.contents, key)?.[field] ?? []));
}
