/**
 * Every rule of a kind is tried: the table in test/crd-rules holds an object that each rule refuses, and a sound one in
 * which it is evaluated. What the table says is proven against a real API server by test/cluster/verdicts.test.ts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDefaults } from "../../../generated/defaults.ts";
import { KINDS } from "../../../generated/kinds.ts";
import { type OneOf, RULES, type Rule, type RuleNode } from "../../../generated/rules.ts";
import { type Case, loadCases } from "../../crd-rules/load.ts";

const OWN = KINDS.filter(({ owned }) => owned).map(({ kind }) => kind);

function rootOf(kind: string): RuleNode {
  const root = RULES[`gwproxy.dev/${kind}`];
  assert.ok(root, `${kind} has no rules`);
  return root;
}

interface Visit {
  readonly node: RuleNode;
  /** Field path such as "spec.targetRefs[0]". */
  readonly path: string;
}

/** The nodes with rules that an object has values for. */
function* visits(node: RuleNode, value: unknown, path: string): Generator<Visit> {
  if (value === undefined || value === null) return;
  yield { node, path };
  if (typeof value !== "object") return;
  for (const [name, child] of Object.entries(value)) {
    const step = Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const below = Array.isArray(value) ? node.items : (node.fields?.[name] ?? node.values);
    if (below !== undefined) yield* visits(below, child, step);
  }
}

/** Every rule of a kind, but those of its status, with the first place where it stands; a component that is used twice has its rules once. */
function rulesBelow(root: RuleNode): Map<Rule | OneOf, string> {
  const found = new Map<Rule | OneOf, string>();
  const visit = (node: RuleNode, path: string): void => {
    for (const rule of [...(node.rules ?? []), ...(node.oneOf ?? [])]) if (!found.has(rule)) found.set(rule, path);
    for (const [name, child] of Object.entries(node.fields ?? {}))
      if (path !== "" || name !== "status") visit(child, `${path}.${name}`);
    if (node.items !== undefined) visit(node.items, `${path}[]`);
    if (node.values !== undefined) visit(node.values, `${path}{}`);
  };
  visit(root, "");
  return found;
}

function refuses(rule: Rule | OneOf, path: string, { faults }: Case): boolean {
  const field = "fieldPath" in rule ? (rule.fieldPath ?? "") : "";
  return faults.some((fault) => fault.path === path + field && fault.message.endsWith(`: ${rule.message}`));
}

test("every rule of our kinds has an object that it refuses and one that it takes", () => {
  const refused = new Set<Rule | OneOf>();
  const taken = new Set<Rule | OneOf>();
  for (const each of loadCases()) {
    const key = `gwproxy.dev/${each.kind}`;
    for (const { node, path } of visits(rootOf(each.kind), applyDefaults(key, each.object), "")) {
      for (const rule of [...(node.rules ?? []), ...(node.oneOf ?? [])]) {
        if (each.faults.length === 0) taken.add(rule);
        if (refuses(rule, path, each)) refused.add(rule);
      }
    }
  }
  // A component that several kinds share has its rules once: an object of any of them tries it.
  const all = new Map(OWN.flatMap((kind) => [...rulesBelow(rootOf(kind))].map(([rule, path]) => [rule, kind + path])));
  const missing = (set: ReadonlySet<Rule | OneOf>): string[] =>
    [...all].filter(([rule]) => !set.has(rule)).map(([rule, path]) => `${path}: ${rule.message}`);
  assert.deepEqual(missing(refused), [], "no object in test/crd-rules is refused by these rules");
  assert.deepEqual(missing(taken), [], "no sound object in test/crd-rules holds what these rules are about");
});
