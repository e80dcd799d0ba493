import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AiPolicySchema,
  AuthorizationAction,
  BackendSettingsSchema,
  RouteType,
  type BackendSettings,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { mergeSettings } from "../../../../src/proxy/backends/settings.ts";

function settingsWith(ai: MessageInitShape<typeof AiPolicySchema>): BackendSettings {
  return create(BackendSettingsSchema, { ai: create(AiPolicySchema, ai) });
}

test("a block of the most specific level that sets it stands in place of the others", () => {
  const merged = mergeSettings([
    create(BackendSettingsSchema, { tls: { sni: "a", alpn: ["h2"] }, http: { requestTimeoutMs: 1 } }),
    undefined,
    create(BackendSettingsSchema, { tls: { sni: "b" } }),
  ]);
  assert.deepEqual([merged.tls?.sni, merged.tls?.alpn, merged.http?.requestTimeoutMs], ["b", [], 1]);
});

test("fields of ai are won separately, and an empty one wins nothing", () => {
  const gateway = settingsWith({
    modelAliases: { fast: "small" },
    routes: { "*": RouteType.MESSAGES },
    overrides: [{ field: "a", valueJson: "1" }],
    promptGuard: { streaming: true },
  });
  const route = settingsWith({ modelAliases: { slow: "large" }, routes: {}, overrides: [], defaults: [] });
  const backend = settingsWith({ defaults: [{ field: "b", valueJson: "2" }], promptGuard: { streaming: false } });
  const { ai } = mergeSettings([gateway, undefined, route, create(BackendSettingsSchema), backend]);
  assert.deepEqual(ai?.modelAliases, { slow: "large" });
  assert.deepEqual(ai.routes, { "*": RouteType.MESSAGES });
  assert.deepEqual(
    ai.overrides.map(({ field }) => field),
    ["a"],
  );
  assert.deepEqual(
    ai.defaults.map(({ field }) => field),
    ["b"],
  );
  assert.equal(ai.promptGuard?.streaming, false);
  assert.deepEqual(gateway.ai?.modelAliases, { fast: "small" }, "levels stay as they are");
});

test("fields of mcp are won separately, and no rule of authorization is lost", () => {
  const ruleOf = (text: string) => ({ rules: [{ action: AuthorizationAction.DENY, expressions: [text] }] });
  const gateway = create(BackendSettingsSchema, {
    mcp: { authorization: ruleOf("a"), authentication: { mcp: { issuer: "one" } }, guardrails: [{ failOpen: true }] },
  });
  const route = create(BackendSettingsSchema, { mcp: { authentication: { mcp: { issuer: "two" } } } });
  const backend = create(BackendSettingsSchema, { mcp: { authorization: ruleOf("b") } });
  const { mcp } = mergeSettings([gateway, undefined, route, create(BackendSettingsSchema), backend]);
  assert.deepEqual(
    mcp?.authorization?.rules.map(({ expressions }) => expressions),
    [["a"], ["b"]],
  );
  assert.equal(mcp.authentication?.mcp?.issuer, "two");
  assert.equal(mcp.guardrails.length, 1);
  assert.equal(gateway.mcp?.authorization?.rules.length, 1, "levels stay as they are");
});
