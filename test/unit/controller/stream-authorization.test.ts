import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { authorizeByToken } from "../../../src/controller/stream-authorization.ts";

const authorize = authorizeByToken((token, audience) =>
  Promise.resolve(audience === "gwproxy" && token !== "forged" ? { username: token } : undefined),
);

test("the service account that bears the Gateway's name follows it", async () => {
  const token = "system:serviceaccount:shop:edge";
  assert.deepEqual(await authorize({ gateway: "shop/edge", token }), { allowed: true });
});

test("another account, another namespace, a token that is not valid and none at all are refused with what is needed", async () => {
  for (const [token, says] of [
    ["system:serviceaccount:shop:other", /shop:other may not follow Gateway shop\/edge/],
    ["system:serviceaccount:other:edge", /system:serviceaccount:shop:edge may/],
    ["forged", /not valid/],
    [undefined, /a token of system:serviceaccount:shop:edge for the audience gwproxy is needed/],
  ] as const) {
    const verdict = await authorize({ gateway: "shop/edge", token });
    assert.equal(verdict.allowed, false);
    assert.match(verdict.allowed ? "" : verdict.reason, says);
  }
});

test("a Gateway with a name longer than an account's is known by the name that its data plane gets", async () => {
  const name = `${"long-".repeat(14)}name`;
  const digest = createHash("sha256").update(name).digest("hex").slice(0, 12);
  const token = `system:serviceaccount:shop:${"long-".repeat(9)}long-${digest}`;
  assert.deepEqual(await authorize({ gateway: `shop/${name}`, token }), { allowed: true });
});
