/**
 * Explains the rules of a route for operators (`/explain` of the admin server): the policies of each rule in their
 * order, and for a route that others delegate to, the chain that leads to it. `RouteTable` and `Configuration` call it
 * with the routes in force.
 */
import type { Bind, TcpRoute } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { explainPolicies, type ExplainedLevel, type ExplainedPolicy } from "../pipeline/explain.ts";
import { explainSettings, type ExplainedSetting, type SettingsKind } from "../pipeline/explain-settings.ts";
import type { ProviderBehind } from "../backends/backend-kind.ts";
import type { DebugTrace } from "../exchange/debug-trace.ts";
import { COLLECTED_FRONTEND, frontendNames } from "../listeners/frontends.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { chainLevels, type ChainLink } from "./bind-chain.ts";
import { inlineOf } from "./bind-rule.ts";
import {
  closedBy,
  explainBackend,
  explainCallsBehind,
  explainMirrors,
  type BackendPlace,
  type CallsBehind,
  type ExplainedBackend,
  type ExplainedMirror,
} from "./explain-backend.ts";
import { routeText, type CompiledRoute } from "./route.ts";

/** A route on one of its listeners, for operators. */
export interface ExplainedRoute {
  readonly route: string;
  readonly listener: string;
  /** The rules that delegate to the route, parent first, such as "HTTPRoute infra/parent rule 0". */
  readonly via?: readonly string[];
  /** How the port of the listener takes connections: the settings by name, and which policies supply them. */
  readonly frontend?: readonly ExplainedSetting[];
  readonly rules: readonly ExplainedRule[];
}

/**
 * The policies of a rule. A rule with backends that traffic policies target has an entry for each of them, and one for
 * its other backends.
 */
interface ExplainedRule {
  /** Name of the rule, or its position; as in the access log. */
  readonly rule: string;
  /** The backend whose requests get these policies, such as "inferencepool/default/llama"; unset for all others. */
  readonly backend?: string;
  /** The backend of the rule whose providers lead to `backend`: the policies run after those of the rule. */
  readonly behind?: string;
  /** The provider of `behind` that leads to `backend`, or the GwModel; unset for one without a name. */
  readonly provider?: string;
  /** Why every request to the rule is answered with an error, where that is so. */
  readonly refuses?: string;
  /** The routes that the rule delegates to, such as "team/*". */
  readonly delegates?: readonly string[];
  readonly policies: readonly ExplainedPolicy[];
  /** The backends of a TCPRoute or TLSRoute; of other routes those whose calls a policy or setting governs. */
  readonly backends?: readonly ExplainedBackend[];
  /** The backends that get copies of requests, where a policy or setting governs those calls. */
  readonly mirrors?: readonly ExplainedMirror[];
}

/** A listener of a route: its key, and the policies of its Gateway, port and of itself. */
export interface ListenerPlace extends BackendPlace {
  readonly listener: string;
  readonly outer: readonly (readonly CompiledPolicy[])[];
}

export interface ExplainedPlace extends ListenerPlace {
  /** Returns the providers of a backend that lead to another one. */
  readonly behind: (backend: string) => readonly ProviderBehind[];
  /** Rules that lead to the route, parent first; empty for a route of the listener itself. */
  readonly via: readonly ChainLink[];
}

const OUTER = ["gateway", "port", "listener"] as const;
const OWN = ["route", "rule", "filters"] as const;

export function explainRoute({ message, name, rules }: CompiledRoute, place: ExplainedPlace): ExplainedRoute {
  const { listener, via } = place;
  return {
    route: `${message.object?.kind ?? "HTTPRoute"} ${name}`,
    listener,
    ...(via.length === 0 ? {} : { via: via.map(({ compiled: { info } }) => `${routeText(info)} rule ${info.rule}`) }),
    ...frontendOf(place),
    rules: rules.flatMap((rule) => explainRule({ routeKey: message.key, compiled: rule }, place)),
  };
}

/**
 * Explains a TCPRoute or TLSRoute. Traffic policies are for requests; what holds for bytes is that a policy of the
 * Gateway or port that fails closed refuses every connection.
 */
export function explainTcpRoute({ object, backends }: TcpRoute, place: ListenerPlace): ExplainedRoute {
  const { listener, outer } = place;
  const closing = [outer[0] ?? [], outer[1] ?? []].map((level, at): ExplainedLevel => ({
    level: OUTER[at] ?? "port",
    policies: level.flatMap(closingPart),
  }));
  return {
    route: `${object?.kind ?? "TCPRoute"} ${object?.namespace ?? ""}/${object?.name ?? ""}`,
    listener,
    ...frontendOf(place),
    rules: [
      {
        rule: "0",
        policies: explainPolicies(closing),
        backends: backends.map((backend) => refusingBytes(explainBackend(backend, levelsAbove(outer), place))),
      },
    ],
  };
}

function levelsAbove(outer: ListenerPlace["outer"]): ExplainedLevel[] {
  return outer.map((level, at) => ({ level: OUTER[at] ?? "listener", policies: level }));
}

const FRONTEND_SETTINGS: SettingsKind = {
  field: "spec.frontend",
  collected: COLLECTED_FRONTEND,
  namesOf: ({ frontend }) => frontendNames(frontend),
};

/** Returns the settings of a route's port; they come from the Gateway and the port, never from a listener. */
function frontendOf({ outer }: ListenerPlace): Pick<ExplainedRoute, "frontend"> {
  const frontend = explainSettings(levelsAbove(outer.slice(0, 2)), FRONTEND_SETTINGS);
  return frontend.length === 0 ? {} : { frontend };
}

/** How a port of a Gateway takes connections, for operators. */
export interface ExplainedPort {
  /** "namespace/name". */
  readonly gateway: string;
  readonly port: number;
  /** Why every connection is refused, where that is so. */
  readonly refuses?: string;
  readonly frontend: readonly ExplainedSetting[];
}

/** @param gateway "namespace/name" */
export function explainPort({ key, port }: Bind, gateway: string, policies: PolicySet): ExplainedPort {
  const outer = outerOfPort(key, gateway, policies);
  return { gateway, port, ...closedBy(outer.flat()), frontend: explainSettings(levelsAbove(outer), FRONTEND_SETTINGS) };
}

function outerOfPort(bind: string, gateway: string, policies: PolicySet): (readonly CompiledPolicy[])[] {
  return [policies.at(`gateway:${gateway}`), policies.at(`bind:${bind}`)];
}

/**
 * Shows for a traced request the settings of its port: those that the Gateway supplies, then those that policies which
 * name the port supply.
 * @param bind "port/namespace/gateway"
 */
export function traceFrontend(debug: DebugTrace, bind: string, policies: PolicySet): void {
  const gateway = bind.slice(bind.indexOf("/") + 1);
  const settings = explainSettings(levelsAbove(outerOfPort(bind, gateway, policies)), FRONTEND_SETTINGS);
  for (const [phase, wanted] of FRONTEND_PHASES) {
    const effectivePolicy = settings.flatMap(({ policy, from }) =>
      from.filter(({ level }) => level === wanted).map(({ origin }) => ({ policy, origin })),
    );
    debug.record({ type: "policySelection", phase, effectivePolicy });
  }
}

const FRONTEND_PHASES = [
  ["frontend", "gateway"],
  ["listenerFrontend", "port"],
] as const;

/** Settings that decide about requests, and so let no connection of bytes to the backend. */
const NEEDS_REQUESTS: ReadonlySet<string> = new Set(["authorization", "extAuth"]);

function refusingBytes(explained: ExplainedBackend): ExplainedBackend {
  const closing = explained.policies.find(({ policy }) => NEEDS_REQUESTS.has(policy));
  return closing === undefined ? explained : { refuses: `${closing.policy} needs requests`, ...explained };
}

/** Reduces a policy to what refuses connections. */
function closingPart(policy: CompiledPolicy): CompiledPolicy[] {
  if (!policy.failsClosed) return [];
  return [{ ...policy, units: policy.units.filter(({ unit }) => unit.case === "failClosed") }];
}

function explainRule(link: ChainLink, place: ExplainedPlace): ExplainedRule[] {
  const { policies, outer, via, behind } = place;
  const { message, info, filters, delegation, backends } = link.compiled;
  const links = [...via, link];
  const above = levelsAbove(outer);
  const own = chainLevels(links, policies).map((level, at): ExplainedLevel => {
    const ancestor = via[Math.floor(at / OWN.length)];
    const route = ancestor === undefined ? {} : { route: routeText(ancestor.compiled.info) };
    return { level: OWN[at % OWN.length] ?? "rule", ...route, policies: level };
  });
  const explain = (traffic: readonly CompiledPolicy[]): ExplainedRule["policies"] =>
    explainPolicies(
      [...above, { level: "backend", policies: traffic }, ...own],
      inlineOf(filters, link.routeKey, message),
    );
  const rule = {
    rule: info.rule,
    ...(message.invalidReason === "" ? {} : { refuses: message.invalidReason }),
    ...(delegation === undefined ? {} : { delegates: delegation.groups.map(({ key }) => groupText(key)) }),
  };
  const keys = [...new Set(backends.map(({ message: { backend } }) => backend))];
  const governed = keys.filter((key) => policies.trafficOf(key).length > 0);
  const others = keys.length === 0 || governed.length < keys.length || delegation !== undefined;
  const settings = backends
    .filter(({ message: { backend, invalidReason } }) => backend !== "" && invalidReason === "")
    .map(({ message: backend }) => explainBackend(backend, [...above, ...own], place))
    .filter(isGoverned);
  const mirroring = links.findLast(({ compiled }) => compiled.filters.mirrors.length > 0) ?? link;
  const copies = explainMirrors(mirroring.compiled.filters, link.compiled, [...above, ...own], place).filter(
    isGoverned,
  );
  const settingsOf = (fits: (key: string) => boolean): Pick<ExplainedRule, "backends" | "mirrors"> => {
    const fitting = settings.filter(({ backend }) => fits(backend));
    const copied = copies.filter(({ of }) => of === undefined || fits(of));
    return {
      ...(fitting.length === 0 ? {} : { backends: fitting }),
      ...(copied.length === 0 ? {} : { mirrors: copied }),
    };
  };
  return [
    ...governed.map((backend) => ({
      ...rule,
      backend,
      policies: explain(policies.trafficOf(backend)),
      ...settingsOf((key) => key === backend),
    })),
    ...(others ? [{ ...rule, policies: explain([]), ...settingsOf((key) => !governed.includes(key)) }] : []),
    ...keys.flatMap((key) =>
      behind(key).flatMap((provider) => explainBehind({ rule, key, provider, levels: [...above, ...own] }, place)),
    ),
  ];
}

function isGoverned({ refuses, policies, sections }: Omit<ExplainedBackend, "weight">): boolean {
  return refuses !== undefined || policies.length > 0 || sections !== undefined;
}

interface PlaceBehind extends CallsBehind {
  readonly rule: Pick<ExplainedRule, "rule">;
}

/** @returns nothing where no policy targets the backend behind the provider */
function explainBehind({ rule, ...calls }: PlaceBehind, place: ExplainedPlace): ExplainedRule[] {
  const { provider, backend } = calls.provider;
  const explained = explainCallsBehind(calls, place);
  if (explained === undefined) return [];
  return [
    {
      ...rule,
      backend,
      behind: calls.key,
      ...(provider === "" ? {} : { provider }),
      policies: explainPolicies([{ level: "backend", policies: place.policies.trafficOf(backend) }]),
      backends: [explained],
    },
  ];
}

/** Returns "namespace/name" of the members from the key of a group; the name of a label may have a slash itself. */
function groupText(key: string): string {
  return key.split("/").slice(3).join("/");
}
