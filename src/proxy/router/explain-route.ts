/**
 * Explains the rules of a route for operators (`/explain` of the admin server): the policies of each rule in their
 * order, and for a route that others delegate to, the chain that leads to it. `RouteTable` and `Configuration` call it
 * with the routes in force.
 */
import type { TcpRoute } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { explainPolicies, type ExplainedLevel, type ExplainedPolicy } from "../pipeline/explain.ts";
import type { CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import { chainLevels, type ChainLink } from "./bind-chain.ts";
import { inlineOf } from "./bind-rule.ts";
import type { CompiledRoute, CompiledRule } from "./route.ts";

/** A route on one of its listeners, for operators. */
export interface ExplainedRoute {
  readonly route: string;
  readonly listener: string;
  /** The rules that delegate to the route, parent first, such as "HTTPRoute infra/parent rule 0". */
  readonly via?: readonly string[];
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
  /** Why every request to the rule is answered with an error, where that is so. */
  readonly refuses?: string;
  /** The routes that the rule delegates to, such as "team/*". */
  readonly delegates?: readonly string[];
  readonly policies: readonly ExplainedPolicy[];
  /** The backends of a TCPRoute or TLSRoute. */
  readonly backends?: readonly ExplainedBackend[];
}

interface ExplainedBackend {
  /** Key of the backend, such as "service/default/db:5432"; "" for a reference that leads to none. */
  readonly backend: string;
  readonly weight: number;
  /** Why every connection to it is refused, where that is so. */
  readonly refuses?: string;
}

/** A listener of a route: its key, and the policies of its Gateway, port and of itself. */
interface ListenerPlace {
  readonly listener: string;
  readonly outer: readonly (readonly CompiledPolicy[])[];
}

export interface ExplainedPlace extends ListenerPlace {
  readonly policies: PolicySet;
  /** Returns the keys of the backends behind the providers of a backend. */
  readonly behind: (backend: string) => readonly string[];
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
    rules: rules.flatMap((rule) => explainRule({ routeKey: message.key, compiled: rule }, place)),
  };
}

/**
 * Explains a TCPRoute or TLSRoute. Traffic policies are for requests; what holds for bytes is that a policy of the
 * Gateway or port that fails closed refuses every connection.
 */
export function explainTcpRoute({ object, backends }: TcpRoute, { listener, outer }: ListenerPlace): ExplainedRoute {
  const closing = [outer[0] ?? [], outer[1] ?? []].map((level, at): ExplainedLevel => ({
    level: OUTER[at] ?? "port",
    policies: level.flatMap(closingPart),
  }));
  return {
    route: `${object?.kind ?? "TCPRoute"} ${object?.namespace ?? ""}/${object?.name ?? ""}`,
    listener,
    rules: [
      {
        rule: "0",
        policies: explainPolicies(closing),
        backends: backends.map(({ backend, weight, invalidReason }) => ({
          backend,
          weight,
          ...(invalidReason === "" ? {} : { refuses: invalidReason }),
        })),
      },
    ],
  };
}

/** Reduces a policy to what refuses connections. */
function closingPart(policy: CompiledPolicy): CompiledPolicy[] {
  if (!policy.failsClosed) return [];
  return [{ ...policy, units: policy.units.filter(({ unit }) => unit.case === "failClosed") }];
}

function explainRule(link: ChainLink, { policies, outer, via, behind }: ExplainedPlace): ExplainedRule[] {
  const { message, info, filters, delegation, backends } = link.compiled;
  const links = [...via, link];
  const above = outer.map((level, at): ExplainedLevel => ({ level: OUTER[at] ?? "listener", policies: level }));
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
  return [
    ...governed.map((backend) => ({ ...rule, backend, policies: explain(policies.trafficOf(backend)) })),
    ...(others ? [{ ...rule, policies: explain([]) }] : []),
    ...keys.flatMap((key) => behind(key).flatMap((backend) => explainBehind(rule, { key, backend, policies }))),
  ];
}

function explainBehind(
  rule: Pick<ExplainedRule, "rule">,
  { key, backend, policies }: { readonly key: string; readonly backend: string; readonly policies: PolicySet },
): ExplainedRule[] {
  const traffic = policies.trafficOf(backend);
  if (traffic.length === 0) return [];
  return [{ ...rule, backend, behind: key, policies: explainPolicies([{ level: "backend", policies: traffic }]) }];
}

function routeText({ kind, namespace, name }: CompiledRule["info"]): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns "namespace/name" of the members from the key of a group; the name of a label may have a slash itself. */
function groupText(key: string): string {
  return key.split("/").slice(3).join("/");
}
