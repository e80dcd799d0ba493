import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { AuthorizationAction, AuthorizationSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../src/lib/errors.ts";
import { ProxyError } from "../../../../src/proxy/exchange/errors.ts";
import { authorization } from "../../../../src/proxy/policies/authorization.ts";
import { makeDeps, makeExchange, makeReply } from "../../../support/gateway/exchange.ts";

const { ALLOW, DENY, REQUIRE, UNSPECIFIED } = AuthorizationAction;
type Rules = readonly (readonly [AuthorizationAction, ...string[]])[];

function compile(rules: Rules): ReturnType<typeof authorization.compile> {
  const spec = create(AuthorizationSchema, {
    rules: rules.map(([action, ...expressions]) => ({ action, expressions })),
  });
  return authorization.compile(spec, makeDeps());
}

function passes(rules: Rules): boolean {
  const reply = makeReply();
  try {
    return compile(rules)(makeExchange({ method: "GET", target: "/a" }), () => reply) === reply;
  } catch (error) {
    assert.ok(error instanceof ProxyError && error.code === "authorization_failed" && error.status === 403);
    return false;
  }
}

/** Walks a list of fifty for each element of such a list, and so on: false, if it ever came to an end. */
function nested(depth: number): string {
  return depth === 0 ? "true" : `![${"1,".repeat(49)}1].all(e${depth}, ${nested(depth - 1)})`;
}

const CASES: readonly [string, Rules, boolean][] = [
  ["no rules let everything pass", [], true],
  ["one allow rule that holds is enough", [[ALLOW, "false", 'request.method == "GET"']], true],
  ["no allow rule holds", [[ALLOW, "false"]], false],
  [
    "a deny rule wins over an allow rule",
    [
      [ALLOW, "true"],
      [DENY, 'request.path == "/a"'],
    ],
    false,
  ],
  ["a deny rule that does not hold leaves the rest open", [[DENY, "false"]], true],
  [
    "every require rule must hold",
    [
      [REQUIRE, "true", "false"],
      [ALLOW, "true"],
    ],
    false,
  ],
  ["require rules alone let pass when all hold", [[REQUIRE, "true", 'request.path == "/a"']], true],
  [
    "require does not stand in for a missing allow",
    [
      [REQUIRE, "true"],
      [ALLOW, "false"],
    ],
    false,
  ],
  ["an allow rule that fails does not match", [[ALLOW, 'jwt.sub == "x"']], false],
  ["a deny rule that fails denies", [[DENY, 'jwt.sub == "x"']], false],
  ["a deny rule that takes too many steps denies", [[DENY, nested(5)]], false],
  ["a deny rule whose result is not a boolean denies", [[DENY, '"no"']], false],
  ["a deny rule that does not fail where it decides leaves the rest open", [[DENY, 'false && jwt.sub == "x"']], true],
  ["a deny rule that asks first leaves the rest open", [[DENY, 'has(jwt.sub) && jwt.sub == "x"']], true],
  ["a require rule that fails denies", [[REQUIRE, 'jwt.sub == "x"']], false],
  ["a result that is not a boolean is not true", [[ALLOW, '"yes"']], false],
  ["a deny rule that does not compile denies", [[DENY, "reqest.path =="]], false],
  ["an allow rule that does not compile allows nothing", [[ALLOW, "nosuch(1)"]], false],
];

for (const [name, rules, expected] of CASES) {
  test(`authorization: ${name}`, () => {
    assert.equal(passes(rules), expected);
  });
}

test("a rule without an action is a configuration error", () => {
  assert.throws(() => compile([[UNSPECIFIED, "true"]]), ConfigError);
});
