/**
 * Explains the rules of a route for operators (`/explain` of the admin server): the policies of each rule in their
 * order, and for a route that others delegate to, the chain that leads to it. `RouteTable` calls it with the routes in
 * force.
 */
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

interface ExplainedRule {
  /** Name of the rule, or its position; as in the access log. */
  readonly rule: string;
  /** Why every request to the rule is answered with an error, where that is so. */
  readonly refuses?: string;
  /** The routes that the rule delegates to, such as "team/*". */
  readonly delegates?: readonly string[];
  readonly policies: readonly ExplainedPolicy[];
}

export interface ExplainedPlace {
  readonly policies: PolicySet;
  /** Key of the listener, and the policies of its Gateway, port and of itself. */
  readonly listener: string;
  readonly outer: readonly (readonly CompiledPolicy[])[];
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
    rules: rules.map((rule) => explainRule({ routeKey: message.key, compiled: rule }, place)),
  };
}

function explainRule(link: ChainLink, { policies, outer, via }: ExplainedPlace): ExplainedRule {
  const { message, info, filters, delegation } = link.compiled;
  const links = [...via, link];
  const levels: ExplainedLevel[] = [
    ...outer.map((level, at) => ({ level: OUTER[at] ?? "listener", policies: level })),
    ...chainLevels(links, policies).map((level, at): ExplainedLevel => {
      const ancestor = via[Math.floor(at / OWN.length)];
      const route = ancestor === undefined ? {} : { route: routeText(ancestor.compiled.info) };
      return { level: OWN[at % OWN.length] ?? "rule", ...route, policies: level };
    }),
  ];
  return {
    rule: info.rule,
    ...(message.invalidReason === "" ? {} : { refuses: message.invalidReason }),
    ...(delegation === undefined ? {} : { delegates: delegation.groups.map(({ key }) => groupText(key)) }),
    policies: explainPolicies(levels, inlineOf(filters, link.routeKey, message)),
  };
}

function routeText({ kind, namespace, name }: CompiledRule["info"]): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns "namespace/name" of the members from the key of a group; the name of a label may have a slash itself. */
function groupText(key: string): string {
  return key.split("/").slice(3).join("/");
}
