import assert from "node:assert/strict";
import { test } from "node:test";
import type { Step } from "../../../src/lib/unread.ts";
import { unservedFields } from "../../../src/translator/unserved.ts";

const POLICY = "gwproxy.dev/GwPolicy";
const at = (...path: Step[]) => ({ path, value: true });

test("a field is written as a path, and part of what protects protects", () => {
  const unread = [
    at("spec", "traffic", "hostRewrite"),
    at("spec", "traffic", "rateLimit", "conditional", 0, "policy", "global"),
  ];
  assert.deepEqual(
    unservedFields(POLICY, unread, []).map(({ path, protects }) => [path, protects]),
    [
      ["spec.traffic.hostRewrite", false],
      ["spec.traffic.rateLimit.conditional[0].policy.global", true],
    ],
  );
});

test("a whole section protects when it holds something that does", () => {
  const protects = (value: object): boolean[] =>
    unservedFields(POLICY, [{ path: ["spec", "frontend"], value }], []).map((field) => field.protects);
  assert.deepEqual(protects({ tls: {}, accessLog: {} }), [true]);
  assert.deepEqual(protects({ http: { http1MaxHeaders: 7 } }), [true]);
  assert.deepEqual(protects({ http: { http1HeaderCase: "Preserve" }, accessLog: {} }), [false]);
});

test("a reported fault accounts for what lies below it and for nothing beside it", () => {
  const unread = [
    at("spec", "traffic", "retry", "codes"),
    at("spec", "traffic", "retryAll"),
    at("spec", "traffic", "local", 0),
  ];
  const faults = ["spec.traffic.retry", "spec.traffic.local"];
  assert.deepEqual(
    unservedFields(POLICY, unread, faults).map(({ path }) => path),
    ["spec.traffic.retryAll"],
  );
});
