/** One HTTPRoute compiled: what its rules match and what they do, still without the policies of the places it is in. */
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

export interface CompiledRoute {
  readonly message: HttpRoute;
  readonly name: string;
  readonly rules: readonly CompiledRule[];
}

export interface CompiledRule {
  readonly message: HttpRule;
  readonly info: { readonly namespace: string; readonly name: string; readonly kind: string; readonly rule: string };
  readonly matches: readonly CompiledMatch[];
  readonly filters: CompiledFilters;
  readonly backends: readonly { readonly message: WeightedBackend; readonly filters: CompiledFilters }[];
}

/** @throws ConfigError naming what cannot be compiled */
export function compileRoute(message: HttpRoute): CompiledRoute {
  return compileRules(message, (rule) => ({
    message: rule,
    matches: rule.matches.map(compileMatch),
    filters: compileFilters(rule.filters),
    backends: rule.backends.map((backend) => ({ message: backend, filters: compileFilters(backend.filters) })),
  }));
}

/**
 * The route that stands in for one that cannot be compiled: what it was to serve answers 500, so that its requests do
 * not fall to a wider route with other policies.
 */
export function refusingRoute(message: HttpRoute, reason: string): CompiledRoute {
  return compileRules(message, ({ name, matches }) => ({
    message: create(HttpRuleSchema, { name, invalidReason: reason }),
    matches: matches.map(widened),
    filters: compileFilters([]),
    backends: [],
  }));
}

/** The match, or its path where the rest cannot be compiled, or else everything that no other route takes. */
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
