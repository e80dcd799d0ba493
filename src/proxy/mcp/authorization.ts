/**
 * Decides which tools, prompts, resources and tasks a caller of an MCP backend may see and use. The handler compiles the
 * rules of all levels for its place; the multiplexer asks for each item of a list, and for the item of each call, so
 * that a change of the rules holds for sessions that began before it.
 *
 * A rule that does not read the variable of an item's kind says the same of all items of that kind. It runs once per
 * request and kind, not for each item: most such rules fail, and a thousand failures take 10 ms.
 */
import {
  AuthorizationAction,
  type Authorization,
  type AuthorizationRule,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { compileRules, type Decide } from "../policies/shared/authorization-rules.ts";
import { valueOf } from "../policies/shared/expression-support.ts";
import { ItemScope, VARIABLES, type Variable } from "./item-scope.ts";
import type { Allows } from "./multiplex/naming/view.ts";

type Compile = (source: string) => Expression;

/** The rules that run together: deny and require rules, and allow rules where there are any. */
interface RuleSet {
  readonly guards: Decide;
  readonly allow: Decide | undefined;
}

/** The rules as they concern the items of one kind. */
interface KindRules {
  /** Rules that say the same of all items of the kind. */
  readonly fixed: RuleSet;
  readonly varying: RuleSet;
}

/** What the fixed rules leave to the others. */
type FixedDecision = "denied" | "allowed" | "open";

/** @returns undefined when no rule is configured: everything is allowed then */
export function compileMcpAuthorization(
  spec: Authorization | undefined,
  expression: (source: string, place: CelPhase) => Expression,
): ((caller: Scope) => Allows) | undefined {
  if (spec === undefined || spec.rules.length === 0) return undefined;
  const compiled = new Map<string, Expression>();
  const compile: Compile = (source) => {
    const known = compiled.get(source) ?? expression(source, "mcp");
    compiled.set(source, known);
    return known;
  };
  const rules = new Map(
    Object.values(VARIABLES).map((variable) => [variable, compileKind(variable, spec.rules, compile)]),
  );
  return (caller) => {
    const decisions = new Map<Variable, FixedDecision>();
    return (kind, target, name) => {
      const variable = VARIABLES[kind];
      // The map has an entry for every variable.
      const { fixed, varying } = rules.get(variable) as KindRules;
      const scope = new ItemScope(caller, { kind, target, name });
      let decision = decisions.get(variable);
      if (decision === undefined) decisions.set(variable, (decision = decideFixed(fixed, varying, scope)));
      if (decision === "denied" || varying.guards(scope) !== undefined) return false;
      return decision === "allowed" || varying.allow?.(scope) === undefined;
    };
  };
}

function compileKind(variable: Variable, rules: readonly AuthorizationRule[], compile: Compile): KindRules {
  const compileSet = (isFixedSet: boolean): RuleSet => {
    const parts = rules.flatMap((rule) => {
      const expressions = rule.expressions.filter((source) => isFixed(compile(source), variable) === isFixedSet);
      return expressions.length === 0 ? [] : [{ ...rule, expressions }];
    });
    const allow = parts.filter(({ action }) => action === AuthorizationAction.ALLOW);
    const guards = parts.filter(({ action }) => action !== AuthorizationAction.ALLOW);
    return {
      guards: compileRules(guards, compile, isAboutItem),
      allow: allow.length === 0 ? undefined : compileRules(allow, compile),
    };
  };
  return { fixed: compileSet(true), varying: compileSet(false) };
}

/** Guardrails may add to their variable while a request is decided about. */
function isFixed({ reads: { attributes, roots } }: Expression, variable: Variable): boolean {
  return !attributes.has(`mcp.${variable}`) && !attributes.has("mcp.*") && !roots.has("mcpGuardrails");
}

function decideFixed(fixed: RuleSet, varying: RuleSet, scope: Scope): FixedDecision {
  if (fixed.guards(scope) !== undefined) return "denied";
  if (fixed.allow !== undefined && fixed.allow(scope) === undefined) return "allowed";
  if (varying.allow !== undefined) return "open";
  return fixed.allow === undefined ? "allowed" : "denied";
}

/**
 * Tells for a deny rule that failed whether it is about the item at all. A rule about tools reads a variable that does
 * not exist for prompts; it must neither hide them, nor may it be evaded by whatever else it fails for. So it is tried
 * with items of all kinds: where it then succeeds, the missing variable was the only reason.
 */
function isAboutItem(rule: Expression, scope: Scope): boolean {
  return !(scope instanceof ItemScope) || valueOf(rule, scope.withAllKinds()) === undefined;
}
