/** Values of the endpoint picker protocol. What a picker writes is bounded and never trusted to have a shape. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  destinationOf,
  parseDestinations,
  servedBy,
  subsetHint,
} from "../../../../../src/proxy/backends/inference-pool/protocol.ts";

test("lists of endpoints are split, trimmed, without repetitions, and cut", () => {
  assert.deepEqual(parseDestinations("10.0.0.1:80"), ["10.0.0.1:80"]);
  assert.deepEqual(parseDestinations(" 10.0.0.1:80, [fd00::1]:80 ,10.0.0.1:80"), ["10.0.0.1:80", "[fd00::1]:80"]);
  assert.deepEqual(parseDestinations(""), []);
  assert.deepEqual(parseDestinations(",, ,"), []);
  const many = Array.from({ length: 100 }, (_, at) => `10.0.0.${at}:80`).join(",");
  assert.equal(parseDestinations(many).length, 16);
  assert.deepEqual(parseDestinations("a".repeat(1_000_000)), ["a".repeat(2_048)]);
});

test("dynamic metadata names endpoints only in its place and as text", () => {
  const name = "x-gateway-destination-endpoint";
  assert.equal(destinationOf({ "envoy.lb": { [name]: "10.0.0.1:80" } }), "10.0.0.1:80");
  for (const group of [undefined, null, "text", 1, [], { [name]: 1 }, { [name]: ["10.0.0.1:80"] }, {}])
    assert.equal(destinationOf(group === undefined ? {} : { "envoy.lb": group }), undefined);
  assert.equal(destinationOf({ [name]: "10.0.0.1:80" }), undefined);
});

test("the metadata that is sent has the namespaces of the protocol", () => {
  assert.deepEqual(subsetHint(["10.0.0.1:80"]), {
    "envoy.lb.subset_hint": { "x-gateway-destination-endpoint-subset": ["10.0.0.1:80"] },
  });
  assert.deepEqual(servedBy("10.0.0.1:80"), {
    "envoy.lb": { "x-gateway-destination-endpoint-served": "10.0.0.1:80" },
  });
});
