/** The endpoints of a Service: localities, those that end, and what stays through a change. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { EndpointsSchema, Locality } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { EndpointSet, type ProxyLocality } from "../../../../src/proxy/balancing/endpoints.ts";
import { testMembers } from "../../../support/gateway/endpoints.ts";

type Init = MessageInitShape<typeof EndpointsSchema>;

const members = testMembers();
let sets = 0;

function makeSet(locality: ProxyLocality, message: Init): EndpointSet {
  const prefix = `set ${sets++}`;
  const set = new EndpointSet(locality, (name) => members.record(`${prefix} ${name}`));
  set.update(create(EndpointsSchema, message));
  return set;
}

/** Addresses that are chosen, sorted. */
function used(set: EndpointSet): string[] {
  const picked = Array.from({ length: 200 }, () => set.pick(members)?.address ?? "none");
  return [...new Set(picked)].toSorted();
}

const HERE: ProxyLocality = { zone: "z1", node: "n1" };
const ENDPOINTS = [
  { address: "same-node", port: 80, ready: true, zone: "z1", node: "n1", hintedZones: ["z2"] },
  { address: "same-zone", port: 80, ready: true, zone: "z1", node: "n2", hintedZones: ["z2"] },
  { address: "elsewhere", port: 80, ready: true, zone: "z2", node: "n3", hintedZones: ["z1", "z2"] },
];

test("without preferences all are alike; with them the nearest serve, and the next when those are out", () => {
  assert.equal(used(makeSet(HERE, { endpoints: ENDPOINTS })).length, 3);
  const zone = makeSet(HERE, { endpoints: ENDPOINTS, preferences: [Locality.ZONE] });
  assert.deepEqual(used(zone), ["same-node", "same-zone"]);
  const node = makeSet(HERE, { endpoints: ENDPOINTS, preferences: [Locality.ZONE, Locality.NODE] });
  assert.deepEqual(used(node), ["same-node"]);
  const states = [...node.all];
  for (const next of ["same-zone", "elsewhere", "same-node"]) {
    const [chosen] = used(node);
    states.find(({ address }) => address === chosen)?.record.evict(1000, undefined, members.now);
    assert.deepEqual(used(node), [next]);
  }
  const hinted = makeSet(HERE, { endpoints: ENDPOINTS, preferences: [Locality.HINTED_ZONE] });
  assert.deepEqual(used(hinted), ["elsewhere"]);
});

test("the strict mode never leaves the nearest, and a data plane that does not know its place leaves nobody out", () => {
  const strict = { endpoints: ENDPOINTS, preferences: [Locality.NODE], strict: true };
  assert.deepEqual(used(makeSet(HERE, strict)), ["same-node"]);
  assert.deepEqual(used(makeSet({ zone: "z1", node: "n9" }, strict)), ["none"]);
  assert.equal(used(makeSet({ zone: "", node: "" }, strict)).length, 3);
  assert.equal(
    used(makeSet({ zone: "z9", node: "" }, { endpoints: ENDPOINTS, preferences: [Locality.ZONE] })).length,
    3,
  );
});

test("endpoints that end serve when nothing is ready, those that are not ready never", () => {
  const [first, second, third] = ENDPOINTS.map((endpoint) => ({ ...endpoint, ready: false }));
  assert.ok(first && second && third);
  const ending = [{ ...first, draining: true }, second, { ...third, draining: true }];
  assert.deepEqual(used(makeSet(HERE, { endpoints: ending })), ["elsewhere", "same-node"]);
  assert.deepEqual(used(makeSet(HERE, { endpoints: [...ending, { address: "ready", port: 80, ready: true }] })), [
    "ready",
  ]);
  assert.deepEqual(used(makeSet(HERE, { endpoints: [second] })), ["none"]);
});

test("a change keeps the endpoints that stay, and one that returns finds its record", () => {
  const set = makeSet(HERE, { endpoints: ENDPOINTS });
  const [stays, leaves] = [...set.all];
  assert.ok(stays && leaves);
  leaves.record.begin();
  leaves.record.recordUnhealthy();
  leaves.record.end();
  set.update(create(EndpointsSchema, { endpoints: ENDPOINTS.filter(({ address }) => address !== leaves.address) }));
  assert.deepEqual(
    [...set.all].map(({ address }) => address),
    ["same-node", "elsewhere"],
  );
  set.update(create(EndpointsSchema, { endpoints: ENDPOINTS }));
  const [same, again] = [...set.all];
  assert.equal(same, stays);
  assert.deepEqual([again?.address, again?.record.health, again?.record.total], [leaves.address, 0.7, 1]);
});

test("a capacity weighs an endpoint, and zero drains it", () => {
  const endpoints = [
    { address: "small", port: 80, ready: true },
    { address: "large", port: 80, ready: true, capacity: 9 },
    { address: "drained", port: 80, ready: true, capacity: 0 },
  ];
  const set = makeSet(HERE, { endpoints });
  const picked = Array.from({ length: 4000 }, () => set.pick(members)?.address);
  const large = picked.filter((address) => address === "large").length;
  assert.ok(large > 3400 && large < 3800, String(large));
  assert.equal(picked.includes("drained"), false);
});
