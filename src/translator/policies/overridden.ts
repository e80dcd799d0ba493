/**
 * Which GwPolicies lose every unit that they set, and to which others; status makes the condition `Overridden` of it.
 * The rules are those by which the data plane merges (proxy/pipeline/compose.ts): at one target the older policy has a
 * unit, between targets the most specific one has it, and an override closes it for what is more specific. Rules of
 * authorization are collected and lose only to an override. What a route says itself is no policy and wins nothing here.
 *
 * A policy is asked about by unit and target, and what others set there wakes it only when it changes which units they
 * set, their age or their targets: editing the values of a policy computes the status of no other one.
 */
import type { GwPolicy } from "../../../generated/types/policy.ts";
import {
  BackendSettingsSchema,
  FrontendSettingsSchema,
  McpPolicySchema,
  Phase,
  type PolicyTarget,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createdAtMs, nameKey } from "../../api/refs.ts";
import { policyKey, routeKey } from "../../ir/keys.ts";
import type { Collection, Readable, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Graph, Read } from "../../lib/collections/graph.ts";
import type { ReadableGroups } from "../../lib/collections/groups.ts";
import { compare } from "../../lib/compare.ts";
import type { GatewayView, ParentView } from "../shared/views.ts";
import type { RouteVisibility } from "../references/visibility.ts";
import type { PolicyContent } from "./content.ts";
import type { TargetResolution } from "./target.ts";

/** What a policy sets and where, without any value. */
interface PolicyOutline {
  /** As the data plane orders policies of one age. */
  readonly key: string;
  /** "namespace/name" */
  readonly name: string;
  readonly createdAtMs: number;
  readonly override: boolean;
  /** "PostRouting cors", "backend tls", "frontend http" */
  readonly units: readonly string[];
  /** "gateway default/gw", "route httproute/default/web#rule" */
  readonly targets: readonly string[];
}

/** "namespace/name" of the winners, by the Gateway at which the policy loses everything. */
export type Overriding = ReadonlyMap<string, readonly string[]>;

export const NOT_OVERRIDDEN: Overriding = new Map();

/** The units that policies set on a route as a whole, or on each of its rules. */
interface RouteUnits {
  readonly listeners: readonly string[];
  /** Winners by unit. */
  readonly winners: ReadonlyMap<string, readonly string[]>;
}

interface RouteUnitsOfKind {
  readonly units: Collection<RouteUnits>;
  /** Routes by "listener unit". */
  readonly byListener: ReadableGroups;
}

/** The collections of one kind of route that are read here. */
interface AttachedRoutes {
  readonly attachments: Collection<readonly ParentView[]>;
  /** Routes, grouped by listener. */
  readonly byListener: ReadableGroups;
  readonly visibility: Readable<RouteVisibility>;
}

export interface OverriddenContext {
  readonly contents: Readable<PolicyContent>;
  readonly targets: Readable<TargetResolution>;
  readonly gateways: Readable<GatewayView>;
  /** Every kind of route that can be attached to a listener. */
  readonly routes: readonly AttachedRoutes[];
  /** Those of them that policies can be attached to. */
  readonly policyRoutes: Readonly<Record<string, AttachedRoutes>>;
}

interface Lookup {
  readonly read: Read;
  readonly context: OverriddenContext;
  readonly byUnit: ReadableIndex<PolicyOutline>;
  readonly routeUnits: readonly RouteUnitsOfKind[];
}

/** More names make no message clearer. */
const MOST_WINNERS = 8;

export function declareOverridden(
  graph: Graph,
  policies: Collection<GwPolicy>,
  context: OverriddenContext,
): Collection<Overriding> {
  const outlines = graph.derive("policy outlines", policies, (key, policy, read) =>
    outlineOf(policy, read.get(context.contents, key), read.get(context.targets, key)),
  );
  const byTarget = outlines.index(({ targets }) => targets);
  const byUnit = outlines.index(({ targets, units }) =>
    targets.flatMap((target) => units.map((unit) => `${unit} ${target}`)),
  );
  const routeUnits = Object.entries(context.policyRoutes).map(
    ([kind, { attachments, visibility }]): RouteUnitsOfKind => {
      const units = graph.derive(`${kind} units`, attachments, (key, parents, read) =>
        unitsOfRoute(parents, read.get(visibility, key), byTarget, read),
      );
      const byListener = units.groups(({ listeners, winners }, member) =>
        listeners.flatMap((listener) => [...winners.keys()].map((unit) => ({ group: `${listener} ${unit}`, member }))),
      );
      return { units, byListener };
    },
  );
  return graph.derive("overridden policies", outlines, (key, outline, read): Overriding | undefined => {
    const gateways = read.get(context.targets, key)?.gateways ?? [];
    const lookup = { read, context, byUnit, routeUnits };
    const losing = gateways.flatMap((gateway) => {
      const winners = winnersAt(gateway, outline, lookup);
      return winners === undefined ? [] : [[gateway, winners] as const];
    });
    return losing.length === 0 ? undefined : new Map(losing);
  });
}

function outlineOf(
  policy: GwPolicy,
  content: PolicyContent | undefined,
  resolution: TargetResolution | undefined,
): PolicyOutline | undefined {
  if (content === undefined || resolution === undefined || resolution.targets.length === 0) return undefined;
  const name = nameKey({ namespace: policy.metadata.namespace ?? "", name: policy.metadata.name });
  return {
    key: policyKey(policy.metadata.namespace ?? "", policy.metadata.name),
    name,
    createdAtMs: createdAtMs(policy),
    override: content.override,
    units: unitsOf(content),
    targets: resolution.targets.map(targetText),
  };
}

function unitsOf({ phase, units, backend, frontend }: PolicyContent): string[] {
  const early = phase === Phase.PRE_ROUTING ? "PreRouting" : "PostRouting";
  const traffic = units.flatMap(({ unit }) => {
    if (unit.case !== "headerModifiers") return [unit.case ?? ""];
    const { request, response } = unit.value;
    return [
      ...(request === undefined ? [] : ["requestHeaders"]),
      ...(response === undefined ? [] : ["responseHeaders"]),
    ];
  });
  return [
    ...traffic.map((unit) => `${early} ${unit}`),
    ...BackendSettingsSchema.fields.flatMap(({ localName }) =>
      isSet(backend, localName) && localName !== "mcp" ? `backend ${localName}` : [],
    ),
    ...McpPolicySchema.fields.flatMap(({ localName }) =>
      isSet(backend?.mcp, localName) ? `backend mcp.${localName}` : [],
    ),
    ...FrontendSettingsSchema.fields.flatMap(({ localName }) =>
      isSet(frontend, localName) ? `frontend ${localName}` : [],
    ),
  ];
}

function isSet(message: object | undefined, field: string): boolean {
  if (message === undefined || !Object.hasOwn(message, field)) return false;
  const value: unknown = Reflect.get(message, field);
  return Array.isArray(value) ? value.length > 0 : value !== undefined;
}

function targetText({ target, section, port }: PolicyTarget): string {
  if (port !== 0) return `bind ${port}/${target.value}`;
  return `${target.case} ${target.value}${section === "" ? "" : `#${section}`}`;
}

function unitsOfRoute(
  parents: readonly ParentView[],
  route: RouteVisibility | undefined,
  byTarget: ReadableIndex<PolicyOutline>,
  read: Read,
): RouteUnits | undefined {
  if (route === undefined) return undefined;
  const whole = winnersByUnit(`route ${route.key}`, byTarget, read);
  const rules = route.isEveryRuleNamed
    ? [...new Set(route.rules)].map((rule) => winnersByUnit(`route ${route.key}#${rule}`, byTarget, read))
    : [];
  const [first = new Map<string, string>(), ...others] = rules;
  const winners = new Map([...whole].map(([unit, name]) => [unit, [name]]));
  for (const [unit, name] of first) {
    const names = others.map((other) => other.get(unit));
    if (!winners.has(unit) && names.every((other) => other !== undefined)) winners.set(unit, [name, ...names]);
  }
  if (winners.size === 0) return undefined;
  return { listeners: parents.flatMap(({ listeners }) => listeners.map(({ key }) => key)), winners };
}

function winnersByUnit(target: string, byTarget: ReadableIndex<PolicyOutline>, read: Read): Map<string, string> {
  const winners = new Map<string, string>();
  for (const { name, units } of sorted(read.byIndex(byTarget, target)))
    for (const unit of units) if (!winners.has(unit) && !collects(unit)) winners.set(unit, name);
  return winners;
}

/** Oldest first, as the data plane puts them. */
function sorted(entries: readonly { readonly value: PolicyOutline }[]): PolicyOutline[] {
  return entries
    .map(({ value }) => value)
    .sort((a, b) => compare(a.createdAtMs, b.createdAtMs) || compare(a.key, b.key));
}

/** What several policies say about these counts together; what closes the place of a broken policy loses to nothing. */
function collects(unit: string): boolean {
  return /^(?:PreRouting|PostRouting) (?:authorization|failClosed)$|^frontend networkAuthorization$|^backend mcp\.authorization$/.test(
    unit,
  );
}

/** @returns undefined when the policy has a unit anywhere at the Gateway, or says nothing there */
function winnersAt(gateway: string, outline: PolicyOutline, lookup: Lookup): readonly string[] | undefined {
  const listeners = listenersOf(gateway, lookup);
  const targets = outline.targets.filter((target) => isAt(target, gateway, listeners, lookup));
  if (targets.length === 0 || outline.units.length === 0) return undefined;
  const winners = new Set<string>();
  for (const target of targets) {
    for (const unit of outline.units) {
      const found = winnersOf({ unit, target, outline, gateway, listeners }, lookup);
      if (found === undefined) return undefined;
      for (const name of found) winners.add(name);
    }
  }
  return [...winners].sort().slice(0, MOST_WINNERS);
}

function listenersOf(gateway: string, { read, context }: Lookup): readonly string[] {
  const view = read.get(context.gateways, gateway);
  if (view === undefined) return [];
  const all = [...view.listeners, ...view.sets.flatMap((set) => set.listeners)];
  return all.filter(({ error }) => error === undefined).map(({ key }) => key);
}

function isAt(target: string, gateway: string, listeners: readonly string[], lookup: Lookup): boolean {
  const [kind, name = ""] = target.split(" ");
  switch (kind) {
    case "gateway":
      return name === gateway;
    case "bind":
      return name.slice(name.indexOf("/") + 1) === gateway;
    case "listener":
      return listeners.includes(name);
    case "route":
      return (
        listenersOfRoute(name, listeners, lookup).length > 0 || delegatingParents(name, gateway, lookup).length > 0
      );
    default:
      return true;
  }
}

/** @param name "httproute/default/web#rule" */
function listenersOfRoute(name: string, listeners: readonly string[], lookup: Lookup): readonly string[] {
  const { kind, key } = locateRoute(name, lookup);
  const parents = kind === undefined ? [] : (lookup.read.get(kind.attachments, key) ?? []);
  const attached = parents.flatMap((parent) => parent.listeners.map((listener) => listener.key));
  return attached.filter((listener) => listeners.includes(listener));
}

/**
 * Returns the routes of a Gateway that delegate to a route, as "httproute/default/site".
 * @param name "httproute/default/web#rule"
 */
function delegatingParents(name: string, gateway: string, lookup: Lookup): readonly string[] {
  const { kind, key } = locateRoute(name, lookup);
  const parents = kind === undefined ? [] : (lookup.read.get(kind.attachments, key) ?? []);
  return parents.flatMap(({ ref, gateways, error }) =>
    ref.kind === "HTTPRoute" && error === undefined && gateways.includes(gateway)
      ? routeKey(ref.kind, ref.namespace, ref.name)
      : [],
  );
}

/** @param name "httproute/default/web#rule" */
function locateRoute(
  name: string,
  { context }: Lookup,
): { readonly kind: AttachedRoutes | undefined; readonly key: string } {
  const [prefix = "", namespace = "", rest = ""] = name.split("/");
  const [route = ""] = rest.split("#");
  const found = Object.entries(context.policyRoutes).find(
    ([kind]) => routeKey(kind, namespace, route) === `${prefix}/${namespace}/${route}`,
  );
  return { kind: found?.[1], key: `${namespace}/${route}` };
}

interface Contest {
  readonly unit: string;
  readonly target: string;
  readonly outline: PolicyOutline;
  readonly gateway: string;
  /** All of the Gateway. */
  readonly listeners: readonly string[];
}

/** @returns who has the unit wherever the policy is attached to the target; undefined where the policy has it */
function winnersOf(contest: Contest, lookup: Lookup): readonly string[] | undefined {
  const { unit, target, outline } = contest;
  const [oldest] = sorted(lookup.read.byIndex(lookup.byUnit, `${unit} ${target}`));
  if (!collects(unit) && oldest !== undefined && oldest.key !== outline.key) return [oldest.name];
  const above = locksAbove(contest, lookup);
  if (above !== undefined) return above;
  return outline.override || collects(unit) ? undefined : winnersBelow(contest, lookup);
}

/** Overrides of less specific targets, when they hold on every way to the target. */
function locksAbove({ unit, target, gateway, listeners }: Contest, lookup: Lookup): readonly string[] | undefined {
  const [kind, name = ""] = target.split(" ");
  if (kind !== "listener" && kind !== "route") return undefined;
  const ofGateway = lockOf(unit, `gateway ${gateway}`, lookup);
  if (ofGateway !== undefined) return [ofGateway];
  if (kind === "listener") return undefined;
  const [route, rule] = name.split("#");
  const ofRoute = rule === undefined ? undefined : lockOf(unit, `route ${route}`, lookup);
  if (ofRoute !== undefined) return [ofRoute];
  return allOf(locksOnWays(name, { unit, gateway, listeners }, lookup));
}

/**
 * Returns for each way to a route the nearest override above it, undefined for a way without one. Where ways meet they
 * are followed once, so that delegations which lead back come to an end.
 */
function locksOnWays(
  route: string,
  place: Pick<Contest, "unit" | "gateway" | "listeners">,
  lookup: Lookup,
  seen: Set<string> = new Set([route]),
): (string | undefined)[] {
  const { unit, gateway, listeners } = place;
  const ofListeners = listenersOfRoute(route, listeners, lookup).map((key) => lockOf(unit, `listener ${key}`, lookup));
  const ofParents = delegatingParents(route, gateway, lookup).flatMap((parent) => {
    if (seen.has(parent)) return [];
    seen.add(parent);
    const lock = lockOf(unit, `route ${parent}`, lookup);
    return lock === undefined ? locksOnWays(parent, place, lookup, seen) : [lock];
  });
  return [...ofListeners, ...ofParents];
}

function lockOf(unit: string, target: string, { read, byUnit }: Lookup): string | undefined {
  const policies = sorted(read.byIndex(byUnit, `${unit} ${target}`));
  // Only who has the unit can close it; of those who share it each can.
  return (collects(unit) ? policies : policies.slice(0, 1)).find(({ override }) => override)?.name;
}

/** Policies of more specific targets, when they leave nothing of the target over. */
function winnersBelow({ unit, target, listeners }: Contest, lookup: Lookup): readonly string[] | undefined {
  const [kind, name = ""] = target.split(" ");
  if (kind === "gateway") return allOf(listeners.map((listener) => winnersAtListener(unit, listener, lookup)))?.flat();
  if (kind === "listener") return winnersOfRoutes(unit, name, lookup);
  if (kind !== "route" || name.includes("#")) return undefined;
  // The policy itself is oldest on the route: only the rules can take the unit from it.
  return winnersOfRules(unit, name, lookup);
}

function winnersAtListener(unit: string, listener: string, lookup: Lookup): readonly string[] | undefined {
  const [oldest] = sorted(lookup.read.byIndex(lookup.byUnit, `${unit} listener ${listener}`));
  return oldest === undefined ? winnersOfRoutes(unit, listener, lookup) : [oldest.name];
}

/** Counts before it names, so that a listener with ten thousand routes of which one is free costs nothing. */
function winnersOfRoutes(unit: string, listener: string, lookup: Lookup): readonly string[] | undefined {
  const { read, context, routeUnits } = lookup;
  // Before routing there is no route yet.
  if (unit.startsWith("PreRouting ")) return undefined;
  const group = `${listener} ${unit}`;
  const attached = context.routes.reduce((sum, { byListener }) => sum + read.size(byListener, listener), 0);
  const taken = routeUnits.reduce((sum, { byListener }) => sum + read.size(byListener, group), 0);
  if (attached === 0 || taken < attached) return undefined;
  return routeUnits.flatMap(({ units, byListener }) =>
    read
      .members(byListener, group)
      .slice(0, MOST_WINNERS)
      .flatMap((route) => read.get(units, route)?.winners.get(unit) ?? []),
  );
}

function winnersOfRules(unit: string, name: string, lookup: Lookup): readonly string[] | undefined {
  const { read, byUnit } = lookup;
  const { kind, key } = locateRoute(name, lookup);
  const view = kind === undefined ? undefined : read.get(kind.visibility, key);
  if (view?.isEveryRuleNamed !== true) return undefined;
  return allOf(view.rules.map((rule) => sorted(read.byIndex(byUnit, `${unit} route ${name}#${rule}`))[0]?.name));
}

/** @returns undefined when one is missing, or when there are none */
function allOf<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  const present = values.filter((value) => value !== undefined);
  return present.length === values.length && present.length > 0 ? present : undefined;
}
