import assert from "node:assert/strict";
import { test } from "node:test";
import { resourceOf, withNamed } from "../../../../src/telemetry/otlp/resource.ts";

test("a data plane says what it is and where it runs", () => {
  const environment = { OTEL_SERVICE_NAME: "edge", POD_NAME: "gw-1", POD_NAMESPACE: "shop", NODE_NAME: "node-a" };
  assert.deepEqual(resourceOf(environment, "1.2.3"), [
    ["service.name", "edge"],
    ["service.version", "1.2.3"],
    ["k8s.pod.name", "gw-1"],
    ["k8s.namespace.name", "shop"],
    ["k8s.node.name", "node-a"],
  ]);
});

test("what the environment does not say is left out", () => {
  assert.deepEqual(resourceOf({ OTEL_SERVICE_NAME: "", NODE_NAME: "" }, "1.2.3"), [
    ["service.name", "gwproxy"],
    ["service.version", "1.2.3"],
  ]);
});

test("what a policy names replaces and adds", () => {
  assert.deepEqual(
    withNamed(resourceOf({}, "1.2.3"), [
      ["service.name", "checkout"],
      ["tier", 1n],
    ]),
    [
      ["service.name", "checkout"],
      ["service.version", "1.2.3"],
      ["tier", 1n],
    ],
  );
});
