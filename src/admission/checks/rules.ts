/**
 * Evaluates the CEL validation rules of a CRD (x-kubernetes-validations) on an object of the right shape, as the API
 * server does. validator.ts uses it. It visits the children that exist, skips transition rules without an old value,
 * and treats a rule that fails to evaluate as violated.
 */
import type { OneOf, Rule, RuleNode } from "../../../generated/rules.ts";
import { compileExpression } from "../../cel/compile/compile-expression.ts";
import { RULE_ENVIRONMENT } from "../../cel/environments/index.ts";
import type { Expression } from "../../cel/expression.ts";
import type { Scope } from "../../cel/scope.ts";
import { messageOf } from "../../lib/errors.ts";
import { violation } from "../messages.ts";
import { childPath, memberOf } from "../paths.ts";
import type { Violation } from "../violation.ts";

/**
 * Yields violations lazily, so that a caller with enough of them stops the evaluation.
 * @param old the value before an update; undefined when the object is new
 */
export function ruleViolations(root: RuleNode, value: unknown, old: unknown): Generator<Violation> {
  return visit(root, { path: "", value, old });
}

interface RuleContext {
  readonly path: string;
  readonly value: unknown;
  readonly old: unknown;
}

/** Evaluates the rules of a node on its value, then visits the children that exist. */
function* visit(node: RuleNode, place: RuleContext): Generator<Violation> {
  const { path, value, old } = place;
  if (value === undefined || value === null) return;
  for (const rule of node.oneOf ?? []) {
    if (!holdsOneOf(rule, value)) yield invalid(path, node.type, rule.message);
  }
  for (const rule of node.rules ?? []) {
    const found = violationOfRule(node, rule, place);
    if (found !== undefined) yield found;
  }
  for (const name in node.fields) {
    const child = node.fields[name];
    const member = memberOf(value, name);
    if (child === undefined || member === undefined) continue;
    yield* visit(child, { path: childPath(path, name), value: member, old: memberOf(old, name) });
  }
  // Items of an atomic list have no identity, so they have no old value.
  if (node.items !== undefined && Array.isArray(value)) {
    for (const [at, item] of value.entries())
      yield* visit(node.items, { path: childPath(path, at), value: item, old: undefined });
  }
  if (node.values !== undefined && typeof value === "object") {
    for (const name of Object.keys(value)) {
      yield* visit(node.values, {
        path: childPath(path, name),
        value: memberOf(value, name),
        old: memberOf(old, name),
      });
    }
  }
}

function holdsOneOf({ kind, fields }: OneOf, value: unknown): boolean {
  let present = 0;
  for (const name of fields) if (memberOf(value, name) !== undefined) present++;
  return kind === "exactly" ? present === 1 : kind === "atMost" ? present <= 1 : present >= 1;
}

function violationOfRule(node: RuleNode, rule: Rule, { path, value, old }: RuleContext): Violation | undefined {
  const compiled = compile(rule);
  if (compiled.isTransition && old === undefined && rule.optionalOldSelf !== true) return undefined;
  const scope: Scope = { root: (name) => (name === "self" ? value : name === "oldSelf" ? old : undefined) };
  try {
    if (compiled.rule.evaluate(scope) === true) return undefined;
  } catch (error) {
    return invalid(path, node.type, `${messageOf(error)} evaluating rule: ${rule.message ?? rule.rule}`);
  }
  return {
    ...invalid(path + (rule.fieldPath ?? ""), node.type, textOf(rule, compiled, scope)),
    ...reasonOf(rule),
  };
}

interface Compiled {
  readonly rule: Expression;
  readonly message: Expression | undefined;
  readonly isTransition: boolean;
}

/** Rules are compiled when first needed, because most objects touch few of them. */
const compiledRules = new WeakMap<Rule, Compiled>();

function compile(rule: Rule): Compiled {
  const known = compiledRules.get(rule);
  if (known !== undefined) return known;
  const expression = compileExpression(rule.rule, RULE_ENVIRONMENT);
  const message =
    rule.messageExpression === undefined ? undefined : compileExpression(rule.messageExpression, RULE_ENVIRONMENT);
  const compiled = { rule: expression, message, isTransition: expression.reads.roots.has("oldSelf") };
  compiledRules.set(rule, compiled);
  return compiled;
}

function textOf(rule: Rule, { message }: Compiled, scope: Scope): string {
  const standard = rule.message ?? `failed rule: ${rule.rule.trim()}`;
  if (message === undefined) return standard;
  try {
    const text = message.evaluate(scope);
    return typeof text === "string" && text.trim() !== "" && !text.includes("\n") ? text : standard;
  } catch {
    // The API server falls back to the fixed message as well; the object is refused in any case.
    return standard;
  }
}

function invalid(path: string, type: string, message: string): Violation {
  return violation(path, "FieldValueInvalid", `Invalid value: "${type}": ${message}`);
}

function reasonOf(rule: Rule): Partial<Violation> {
  if (rule.reason === undefined || rule.reason === "FieldValueInvalid") return {};
  return { reason: rule.reason };
}
