/**
 * Compiles one HTTPRoute: the matches, filters and backends of its rules, still without the policies of the listeners
 * that it is attached to. `RouteTable` binds the result to each listener.
 */
import { create } from "@bufbuild/protobuf";
import {
  HttpRuleSchema,
  type HttpMatch,
  type HttpRoute,
  type HttpRule,
  type WeightedBackend,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import { compileFilters, type CompiledFilters } from "../pipeline/filters.ts";
import { compileMatch, EVERYTHING, type CompiledMatch } from "./match.ts";
import type { Candidate } from "./precedence.ts";

export interface CompiledRoute {
  readonly message: HttpRoute;
  readonly name: string;
  readonly rules: readonly CompiledRule[];
}

export interface CompiledRule {
  readonly message: HttpRule;
  readonly info: {
    readonly namespace: string;
    readonly name: string;
    readonly kind: string;
    readonly rule: string;
    /** Whether the listener or the route names the hosts that it serves; undefined before the rule is bound. */
    readonly namesHost?: boolean;
  };
  readonly matches: readonly CompiledMatch[];
  readonly filters: CompiledFilters;
  readonly backends: readonly { readonly message: WeightedBackend; readonly filters: CompiledFilters }[];
  /** Set when the rule hands requests on to groups of other routes. */
  readonly delegation: RuleDelegation | undefined;
}

export interface RuleDelegation {
  /** Groups with a weight. */
  readonly groups: readonly { readonly key: string; readonly weight: number }[];
  /** Weight of all backends of the rule together. */
  readonly backendWeight: number;
}

/** @throws ConfigError that names the part which cannot be compiled */
export function compileRoute(message: HttpRoute): CompiledRoute {
  return compileRules(message, (rule) => ({
    message: rule,
    matches: rule.matches.map(compileMatch),
    filters: compileFilters(rule.filters),
    backends: rule.backends.map((backend) => ({ message: backend, filters: compileFilters(backend.filters) })),
    delegation: compileDelegation(rule),
  }));
}

/**
 * Replaces a route that cannot be compiled: requests that it would have served get 500 (fail closed), so that they do
 * not fall to a wider route with other policies.
 */
export function failClosedRoute(message: HttpRoute, reason: string): CompiledRoute {
  return compileRules(message, ({ name, matches }) => ({
    message: create(HttpRuleSchema, { name, invalidReason: reason }),
    matches: matches.map(widened),
    filters: compileFilters([]),
    backends: [],
    delegation: undefined,
  }));
}

function compileDelegation({ backends, invalidReason }: HttpRule): RuleDelegation | undefined {
  const groups = backends.flatMap(({ group: key, weight }) => (key !== "" && weight > 0 ? [{ key, weight }] : []));
  if (groups.length === 0 || invalidReason !== "") return undefined;
  const backendWeight = backends.reduce((sum, { group, weight }) => (group === "" ? sum + weight : sum), 0);
  return { groups, backendWeight };
}

/** Returns the match; if it does not compile, its path alone; if that does not either, a match for every request. */
function widened(match: HttpMatch): CompiledMatch {
  for (const candidate of [match, { ...match, headers: [], query: [] }])
    try {
      return compileMatch(candidate);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
    }
  return EVERYTHING;
}

function compileRules(message: HttpRoute, compile: (rule: HttpRule) => Omit<CompiledRule, "info">): CompiledRoute {
  const namespace = message.object?.namespace ?? "";
  const name = message.object?.name ?? message.key;
  const kind = message.object?.kind ?? "HTTPRoute";
  const rules = message.rules.map((rule, index) => ({
    ...compile(rule),
    info: { namespace, name, kind, rule: rule.name === "" ? String(index) : rule.name },
  }));
  return { message, name: `${namespace}/${name}`, rules };
}

/** Returns the matches of a route. @param made what is made of each rule, in the order of `rules` */
export function candidatesOf<Rule>({ message, rules, name }: CompiledRoute, made: readonly Rule[]): Candidate<Rule>[] {
  const { createdAtMs } = message;
  return made.flatMap((rule, ruleIndex) =>
    (rules[ruleIndex]?.matches ?? []).map((match, matchIndex) => ({
      match,
      createdAtMs,
      routeName: name,
      ruleIndex,
      matchIndex,
      rule,
    })),
  );
}

/** Returns how operators read the route of a rule, such as "HTTPRoute team/shop". */
export function routeText({ kind, namespace, name }: CompiledRule["info"]): string {
  return `${kind} ${namespace}/${name}`;
}
