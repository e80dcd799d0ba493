/**
 * Resolves `targetRefs` and `targetSelectors` of a GwPolicy (policy attachment, GEP-713): the targets in the IR, the
 * Gateways that they reach, and an error for each target that reaches none. Only objects in the policy's own namespace
 * are considered. `../graph.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { GwPolicySpec, TargetRef } from "../../../generated/types/policy.ts";
import { PolicyTargetSchema, type PolicyTarget } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { KubeObject } from "../../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, INFERENCE_GROUP } from "../../api/refs.ts";
import type { Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import type { TranslatedBackend } from "../backends/translate.ts";
import type { HttpRouteKind } from "../shared/status-input.ts";
import type { ListenerSetView, TargetError, GatewayView, PoolView, ServiceView } from "../shared/views.ts";
import { selectByLabels } from "../references/label-index.ts";
import type { BackendVisibility, RouteVisibility, ServiceVisibility } from "../references/visibility.ts";

export type TargetSpec = Pick<GwPolicySpec, "targetRefs" | "targetSelectors">;

export interface TargetResolution {
  readonly targets: readonly PolicyTarget[];
  /** Keys ("namespace/name"), sorted. */
  readonly gateways: readonly string[];
  readonly errors: readonly TargetError[];
}

/** Collections that are available before the visibility of backends is computed. */
export interface RoutingTargets {
  readonly gateways: Readable<GatewayView>;
  readonly allGateways: Readable<KubeObject>;
  readonly listenerSets: Readable<ListenerSetView>;
  readonly routes: { readonly [K in HttpRouteKind]: Readable<RouteVisibility> };
  /** Objects of the kinds that a selector can name, indexed by labels. */
  readonly byLabels: {
    readonly [
      K in "Gateway" | "ListenerSet" | HttpRouteKind | "Service" | "GwBackend" | "InferencePool"
    ]: ReadableIndex<KubeObject>;
  };
}

export interface TargetContext extends RoutingTargets {
  readonly services: Readable<ServiceView>;
  readonly serviceVisibility: Readable<ServiceVisibility>;
  readonly backends: Readable<TranslatedBackend>;
  readonly backendVisibility: Readable<BackendVisibility>;
  readonly pools: Readable<PoolView>;
  readonly poolVisibility: Readable<BackendVisibility>;
}

interface Lookup<Context extends RoutingTargets = TargetContext> {
  readonly namespace: string;
  readonly context: Context;
  readonly read: Read;
}

/** The resolution of one target, or the error with it. */
interface Found {
  readonly targets: readonly PolicyTarget["target"][];
  readonly section?: string;
  readonly port?: number;
  readonly gateways: readonly string[];
  readonly targetError?: Omit<TargetError, "path">;
}

/** A target by name, and the path of the policy field that it comes from. */
interface NamedTarget {
  readonly ref: TargetRef;
  readonly path: string;
}

/** Resolves all targets of a policy, backends included. */
export function resolveTargets(
  spec: TargetSpec,
  namespace: string,
  context: TargetContext,
  read: Read,
): TargetResolution {
  return resolveKinds(spec, TARGET_KINDS, { namespace, context, read });
}

/**
 * Returns the Gateways that a policy reaches through Gateways, ListenerSets and routes, sorted; the services that it
 * calls have to be known there. Targets that are backends are left out, because their visibility depends on this
 * result.
 */
export function gatewaysOfTargets(
  { targetRefs = [], targetSelectors = [] }: TargetSpec,
  namespace: string,
  context: RoutingTargets,
  read: Read,
): readonly string[] {
  const spec = {
    targetRefs: targetRefs.filter(({ kind }) => ROUTING_KINDS.has(kind)),
    targetSelectors: targetSelectors.filter(({ kind }) => ROUTING_KINDS.has(kind)),
  };
  return resolveKinds(spec, ROUTING_KINDS, { namespace, context, read }).gateways;
}

function resolveKinds<Context extends RoutingTargets>(
  spec: TargetSpec,
  kinds: ReadonlyMap<string, TargetKind<Context>>,
  lookup: Lookup<Context>,
): TargetResolution {
  const targets = new Map<string, PolicyTarget>();
  const gateways = new Set<string>();
  const errors: TargetError[] = [];
  const { refs, errors: unmatched } = namedTargets(spec, lookup);
  errors.push(...unmatched);
  for (const { ref, path } of refs) {
    const found = resolve(ref, kinds, lookup);
    if (found.targetError !== undefined) errors.push({ path, ...found.targetError });
    for (const gateway of found.gateways) gateways.add(gateway);
    for (const target of found.targets)
      targets.set(
        `${target.case} ${target.value} ${found.section ?? ""} ${found.port ?? ""}`,
        create(PolicyTargetSchema, { target, section: found.section ?? "", port: found.port ?? 0 }),
      );
  }
  return { targets: [...targets.values()], gateways: [...gateways].sort(), errors };
}

function namedTargets(
  spec: TargetSpec,
  { namespace, context, read }: Lookup<RoutingTargets>,
): { refs: NamedTarget[]; errors: TargetError[] } {
  const refs = (spec.targetRefs ?? []).map((ref, at): NamedTarget => ({ ref, path: `spec.targetRefs[${at}]` }));
  const errors: TargetError[] = [];
  for (const [at, { matchLabels, ...fields }] of (spec.targetSelectors ?? []).entries()) {
    const path = `spec.targetSelectors[${at}]`;
    const index = isSelectable(fields.kind) ? context.byLabels[fields.kind] : undefined;
    const objects = index === undefined ? [] : selectByLabels(read, index, namespace, matchLabels);
    if (objects.length === 0) {
      const labels = Object.entries(matchLabels).map(([name, value]) => `${name}=${value}`);
      errors.push({
        path,
        ...unresolved(`no ${fields.kind} in namespace ${namespace} has the labels ${labels.join(",")}`),
      });
    }
    refs.push(...objects.map(({ metadata }) => ({ ref: { name: metadata.name, ...fields }, path })));
  }
  return { refs, errors };
}

function isSelectable(kind: string): kind is keyof TargetContext["byLabels"] {
  return TARGET_KINDS.has(kind);
}

interface TargetKind<Context extends RoutingTargets> {
  readonly group: string;
  readonly resolve: (ref: TargetRef, lookup: Lookup<Context>) => Found;
}

const ROUTING_KINDS: ReadonlyMap<string, TargetKind<RoutingTargets>> = new Map([
  ["Gateway", { group: GATEWAY_GROUP, resolve: resolveGateway }],
  ["ListenerSet", { group: GATEWAY_GROUP, resolve: resolveListenerSet }],
  ["HTTPRoute", { group: GATEWAY_GROUP, resolve: (ref, lookup) => resolveRoute(ref, "HTTPRoute", lookup) }],
  ["GRPCRoute", { group: GATEWAY_GROUP, resolve: (ref, lookup) => resolveRoute(ref, "GRPCRoute", lookup) }],
]);

const TARGET_KINDS: ReadonlyMap<string, TargetKind<TargetContext>> = new Map<string, TargetKind<TargetContext>>([
  ...ROUTING_KINDS,
  ["Service", { group: "", resolve: resolveService }],
  ["GwBackend", { group: GWPROXY_GROUP, resolve: resolveBackend }],
  ["InferencePool", { group: INFERENCE_GROUP, resolve: resolvePool }],
]);

/** Returns the group of a kind that a policy can target, or undefined for any other kind. */
export function groupOfTarget(kind: string): string | undefined {
  return TARGET_KINDS.get(kind)?.group;
}

function resolve<Context extends RoutingTargets>(
  ref: TargetRef,
  kinds: ReadonlyMap<string, TargetKind<Context>>,
  lookup: Lookup<Context>,
): Found {
  const kind = kinds.get(ref.kind);
  // A kind of another group may have the same name and must never be taken for one of these.
  if (kind === undefined || kind.group !== ref.group)
    return nothing(`${describe(ref, lookup)}: targets of this kind are not served yet`);
  return kind.resolve(ref, lookup);
}

function resolveGateway(ref: TargetRef, lookup: Lookup<RoutingTargets>): Found {
  const { namespace, context, read } = lookup;
  const key = `${namespace}/${ref.name}`;
  const gateway = read.get(context.gateways, key);
  if (gateway === undefined) {
    if (read.get(context.allGateways, key) === undefined) return nothing(`${describe(ref, lookup)} not found`);
    return {
      targets: [],
      gateways: [],
      targetError: {
        message: `${describe(ref, lookup)} belongs to another controller`,
        foreign: true,
        isUnattached: false,
      },
    };
  }
  const { port } = ref;
  if (port !== undefined && !gateway.listeners.some((listener) => listener.port === port))
    return nothing(`${describe(ref, lookup)} has no listener on port ${port}`);
  if (ref.sectionName === undefined) {
    const targets = [{ case: "gateway", value: key } as const];
    return { targets, gateways: [key], ...(port === undefined ? {} : { port }) };
  }
  const listener = gateway.listeners.find(({ name }) => name === ref.sectionName);
  if (listener === undefined) return nothing(`${describe(ref, lookup)} has no listener ${ref.sectionName}`);
  return { targets: [{ case: "listener", value: listener.key }], gateways: [key] };
}

/** Targets each listener of the set, but no listener of the Gateway itself or of another set. */
function resolveListenerSet(ref: TargetRef, lookup: Lookup<RoutingTargets>): Found {
  const { namespace, context, read } = lookup;
  const set = read.get(context.listenerSets, `${namespace}/${ref.name}`);
  if (set === undefined) return nothing(`${describe(ref, lookup)} not found, or its Gateway is not served here`);
  if (!set.allowed) return nothing(`${describe(ref, lookup)}: Gateway ${set.gateway} does not take it`);
  const listeners = set.listeners.filter(({ name }) => ref.sectionName === undefined || name === ref.sectionName);
  if (listeners.length === 0)
    return nothing(`${describe(ref, lookup)} has no listener ${ref.sectionName ?? ""}`.trim());
  return { targets: listeners.map(({ key }) => ({ case: "listener", value: key })), gateways: [set.gateway] };
}

function resolveRoute(ref: TargetRef, kind: HttpRouteKind, lookup: Lookup<RoutingTargets>): Found {
  const { namespace, context, read } = lookup;
  const route = read.get(context.routes[kind], `${namespace}/${ref.name}`);
  if (route === undefined) return nothing(`${describe(ref, lookup)} not found`);
  if (ref.sectionName !== undefined && !route.rules.includes(ref.sectionName))
    return nothing(`${describe(ref, lookup)} has no rule ${ref.sectionName}`);
  if (route.gateways.length === 0) return unattached(ref, lookup, route.foreign);
  return {
    targets: [{ case: "route", value: route.key }],
    gateways: route.gateways,
    ...(ref.sectionName === undefined ? {} : { section: ref.sectionName }),
  };
}

function resolveService(ref: TargetRef, lookup: Lookup): Found {
  const { namespace, context, read } = lookup;
  const key = `${namespace}/${ref.name}`;
  const service = read.get(context.services, key);
  if (service === undefined) return nothing(`${describe(ref, lookup)} not found`);
  const ports = service.ports.filter(({ port }) => ref.sectionName === undefined || String(port) === ref.sectionName);
  if (ports.length === 0) return nothing(`${describe(ref, lookup)} has no port ${ref.sectionName ?? ""}`.trim());
  const reach = read.get(context.serviceVisibility, key);
  const gateways = new Set(ports.flatMap((port) => reach?.get(port.key) ?? []));
  if (gateways.size === 0) return unattached(ref, lookup, false);
  return { targets: ports.map((port) => ({ case: "backend", value: port.key })), gateways: [...gateways] };
}

function resolveBackend(ref: TargetRef, lookup: Lookup): Found {
  const { namespace, context, read } = lookup;
  const key = `${namespace}/${ref.name}`;
  const backend = read.get(context.backends, key);
  if (backend === undefined) return nothing(`${describe(ref, lookup)} not found`);
  if (ref.sectionName !== undefined && !backend.sections.includes(ref.sectionName))
    return nothing(`${describe(ref, lookup)} has no provider ${ref.sectionName}`);
  const gateways = read.get(context.backendVisibility, key)?.gateways ?? [];
  if (gateways.length === 0) return unattached(ref, lookup, false);
  return {
    targets: [{ case: "backend", value: backend.key }],
    gateways,
    ...(ref.sectionName === undefined ? {} : { section: ref.sectionName }),
  };
}

/** A pool has no sections, so a section that a policy names is ignored. */
function resolvePool(ref: TargetRef, lookup: Lookup): Found {
  const { namespace, context, read } = lookup;
  const key = `${namespace}/${ref.name}`;
  const pool = read.get(context.pools, key);
  if (pool === undefined) return nothing(`${describe(ref, lookup)} not found`);
  const gateways = read.get(context.poolVisibility, key)?.gateways ?? [];
  if (gateways.length === 0) return unattached(ref, lookup, false);
  return { targets: [{ case: "backend", value: pool.key }], gateways };
}

function unattached(ref: TargetRef, lookup: Lookup<RoutingTargets>, foreign: boolean): Found {
  const why = foreign ? "is attached to Gateways of another controller only" : "is not attached to any Gateway";
  return {
    targets: [],
    gateways: [],
    targetError: { message: `${describe(ref, lookup)} ${why}`, foreign, isUnattached: true },
  };
}

function nothing(message: string): Found {
  return { targets: [], gateways: [], targetError: unresolved(message) };
}

function unresolved(message: string): Omit<TargetError, "path"> {
  return { message, foreign: false, isUnattached: false };
}

function describe(ref: TargetRef, { namespace }: Lookup<RoutingTargets>): string {
  return `${ref.kind} ${namespace}/${ref.name}`;
}
