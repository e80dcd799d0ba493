/** One HTTPRoute compiled: what its rules match and what they do, still without the policies of the places it is in. */
import type { HttpRoute, HttpRule, WeightedBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { compileFilters, type CompiledFilters } from "../pipeline/filters.ts";
import { compileMatch, type CompiledMatch } from "./match.ts";

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
  const namespace = message.object?.namespace ?? "";
  const name = message.object?.name ?? message.key;
  const kind = message.object?.kind ?? "HTTPRoute";
  const rules = message.rules.map((rule, index) => ({
    message: rule,
    info: { namespace, name, kind, rule: rule.name === "" ? String(index) : rule.name },
    matches: rule.matches.map(compileMatch),
    filters: compileFilters(rule.filters),
    backends: rule.backends.map((backend) => ({ message: backend, filters: compileFilters(backend.filters) })),
  }));
  return { message, name: `${namespace}/${name}`, rules };
}
