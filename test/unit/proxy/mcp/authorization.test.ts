import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { AuthorizationAction, AuthorizationSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { compileExpression } from "../../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../../src/cel/environments/phases.ts";
import type { Scope } from "../../../../src/cel/scope.ts";
import { compileMcpAuthorization } from "../../../../src/proxy/mcp/authorization.ts";
import type { ItemKind } from "../../../../src/proxy/mcp/methods.ts";

const { ALLOW, DENY, REQUIRE } = AuthorizationAction;
const KINDS: readonly ItemKind[] = ["tool", "prompt", "resource", "template", "task"];

const ANN: Scope = { root: (name) => (name === "jwt" ? { sub: "ann" } : undefined) };
const STRANGER: Scope = { root: () => undefined };

type Rule = readonly [action: AuthorizationAction, ...expressions: string[]];

/** The kinds of which the item "a/it" is allowed. */
function allowed(caller: Scope, ...rules: readonly Rule[]): ItemKind[] {
  const spec = create(AuthorizationSchema, {
    rules: rules.map(([action, ...expressions]) => ({ action, expressions })),
  });
  const authorize = compileMcpAuthorization(spec, (text, place) => compileExpression(text, environmentOf(place)));
  return KINDS.filter((kind) => authorize?.(caller)(kind, "a", "it") === true);
}

test("without rules there is nothing to ask", () => {
  const expression = (): never => assert.fail("nothing is compiled");
  assert.equal(compileMcpAuthorization(undefined, expression), undefined);
  assert.equal(compileMcpAuthorization(create(AuthorizationSchema), expression), undefined);
});

test("rules see the kind, target and own name of the item, and a template as a resource", () => {
  for (const kind of ["tool", "prompt", "task"] as const)
    assert.deepEqual(allowed(ANN, [ALLOW, `mcp.${kind}.target == "a" && mcp.${kind}.name == "it"`]), [kind]);
  assert.deepEqual(allowed(ANN, [ALLOW, 'mcp.resource.name == "it"']), ["resource", "template"]);
});

test("an allow or require rule about tools alone leaves nothing of other kinds", () => {
  assert.deepEqual(allowed(ANN, [ALLOW, 'mcp.tool.name == "it"']), ["tool"]);
  assert.deepEqual(allowed(ANN, [REQUIRE, 'mcp.tool.name == "it"']), ["tool"]);
  assert.deepEqual(allowed(ANN, [ALLOW, 'mcp.tool.name == "other"']), []);
});

test("a deny rule about tools alone leaves other kinds alone", () => {
  assert.deepEqual(allowed(ANN, [DENY, 'mcp.tool.name == "it"']), ["prompt", "resource", "template", "task"]);
  assert.deepEqual(allowed(ANN, [DENY, 'mcp.tool.name != "it"']), KINDS);
  assert.deepEqual(allowed(ANN, [DENY, "!has(mcp.tool)"]), ["tool"]);
});

test("a deny rule that fails for another reason denies every kind", () => {
  assert.deepEqual(allowed(STRANGER, [DENY, 'jwt.sub == "eve"']), []);
  assert.deepEqual(allowed(STRANGER, [DENY, 'mcp.tool.name == "x" || jwt.sub == "eve"']), []);
  assert.deepEqual(allowed(ANN, [DENY, 'mcp.tool.name == "x" || jwt.sub == "eve"']), KINDS);
});

test("rules of all levels count: one denial denies, every requirement must hold, allow rules are pooled", () => {
  const allowTools: Rule = [ALLOW, "has(mcp.tool)"];
  assert.deepEqual(allowed(ANN, allowTools, [ALLOW, "has(mcp.task)"]), ["tool", "task"]);
  assert.deepEqual(allowed(ANN, allowTools, [REQUIRE, 'jwt.sub == "bob"']), []);
  assert.deepEqual(allowed(ANN, [ALLOW, "true"], [DENY, "has(mcp.task)"]), ["tool", "prompt", "resource", "template"]);
});

test("a rule that does not read the item runs once for all items of a kind in a request", () => {
  let runs = 0;
  const rules = [
    { action: ALLOW, expressions: ['jwt.sub == "ann"'] },
    { action: DENY, expressions: ['mcp.prompt.name == "x"'] },
  ];
  const authorize = compileMcpAuthorization(create(AuthorizationSchema, { rules }), (text, place) => {
    const { evaluate, ...expression } = compileExpression(text, environmentOf(place));
    return { ...expression, evaluate: (scope) => (runs++, evaluate(scope)) };
  });
  const allows = authorize?.(ANN);
  for (let at = 0; at < 100; at++) assert.equal(allows?.("tool", "a", `tool-${at}`), true);
  // The deny rule runs a second time to find out why it failed.
  assert.equal(runs, 3);
  assert.equal(authorize?.(STRANGER)("tool", "a", "it"), false, "the next request is decided anew");
});
