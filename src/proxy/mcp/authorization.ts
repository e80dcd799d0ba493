/**
 * Decides which tools, prompts, resources and tasks a caller of an MCP backend may see and use. The handler compiles the
 * rules of all levels for its place; the multiplexer asks for each item of a list, and for the item of each call, so
 * that a change of the rules holds for sessions that began before it.
 */
import type { Authorization } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { CelPhase } from "../../cel/environments/phases.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { compileRules } from "../policies/shared/authorization-rules.ts";
import { valueOf } from "../policies/shared/expression-support.ts";
import { ItemScope } from "./item-scope.ts";
import type { Allows } from "./multiplex/naming/view.ts";

/** @returns undefined when no rule is configured: everything is allowed then */
export function compileMcpAuthorization(
  spec: Authorization | undefined,
  expression: (source: string, place: CelPhase) => Expression,
): ((caller: Scope) => Allows) | undefined {
  if (spec === undefined || spec.rules.length === 0) return undefined;
  const decide = compileRules(spec.rules, (source) => expression(source, "mcp"), isAboutItem);
  return (caller) => (kind, target, name) => decide(new ItemScope(caller, { kind, target, name })) === undefined;
}

/**
 * Tells for a deny rule that failed whether it is about the item at all. A rule about tools reads a variable that does
 * not exist for prompts; it must neither hide them, nor may it be evaded by whatever else it fails for. So it is tried
 * with items of all kinds: where it then succeeds, the missing variable was the only reason.
 */
function isAboutItem(rule: Expression, scope: Scope): boolean {
  return !(scope instanceof ItemScope) || valueOf(rule, scope.withAllKinds()) === undefined;
}
