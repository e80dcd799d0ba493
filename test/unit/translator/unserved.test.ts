import assert from "node:assert/strict";
import { test } from "node:test";
import { unservedFields } from "../../../src/translator/unserved.ts";

const POLICY = "gwproxy.dev/GwPolicy";

test("a field is written as a path, and part of what protects protects", () => {
  const unread = [
    ["spec", "traffic", "cors"],
    ["spec", "traffic", "rateLimit", "conditional", 0, "policy", "global"],
  ];
  assert.deepEqual(
    unservedFields(POLICY, unread, []).map(({ path, protects }) => [path, protects]),
    [
      ["spec.traffic.cors", false],
      ["spec.traffic.rateLimit.conditional[0].policy.global", true],
    ],
  );
});

test("a whole section protects when a part of it does", () => {
  assert.deepEqual(
    unservedFields(POLICY, [["spec", "traffic"]], []).map(({ protects }) => protects),
    [true],
  );
});

test("a reported fault accounts for what lies below it and for nothing beside it", () => {
  const unread = [
    ["spec", "traffic", "retry", "codes"],
    ["spec", "traffic", "retryAll"],
    ["spec", "traffic", "local", 0],
  ];
  const faults = ["spec.traffic.retry", "spec.traffic.local"];
  assert.deepEqual(
    unservedFields(POLICY, unread, faults).map(({ path }) => path),
    ["spec.traffic.retryAll"],
  );
});
