/** Endpoints of a Service through real sockets: rollouts, localities, and addresses of two kinds. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { documents, GATEWAY, startGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { endpointSlice, replicaService, startReplicas, type Replica } from "../../support/servers/replicas.ts";

const REQUESTS = 30;

/** A gateway on node n1. @returns who serves with these endpoints, in flow YAML, one slice for each replica in order */
async function stage(t: TestContext, spec: string, locality = { node: "n1", zone: "" }) {
  const replicas = await startReplicas(contextOf(t), "a", "b", "c");
  const manifests = (endpoints: readonly string[]): string => {
    const slices = endpoints.map((text, at) => endpointSlice(`s${at}`, (replicas[at] as Replica).port, `[${text}]`));
    return documents(GATEWAY, replicaService([], spec), ...slices);
  };
  const gateway = await startGateway(contextOf(t), manifests([]), { locality });
  return async (...endpoints: string[]): Promise<string[]> => {
    await gateway.change(manifests(endpoints));
    const served = new Set<string>();
    for (let asked = 0; asked < REQUESTS; asked++) {
      const { status, body } = await call(gateway.url());
      served.add(status === 200 ? body : String(status));
    }
    return [...served].toSorted();
  };
}

const READY = "{addresses: [127.0.0.1]}";
const STARTING = "{addresses: [127.0.0.1], conditions: {ready: false}}";
const ENDING = "{addresses: [127.0.0.1], conditions: {ready: false, serving: true, terminating: true}}";
const ENDED = "{addresses: [127.0.0.1], conditions: {ready: false, serving: false, terminating: true}}";

test("a rollout: what ends serves only while nothing is ready, and what is not ready never", async (t) => {
  const served = await stage(t, "");
  assert.deepEqual(await served(READY, STARTING), ["a"]);
  assert.deepEqual(await served(READY, READY), ["a", "b"]);
  assert.deepEqual(await served(ENDING, READY), ["b"]);
  assert.deepEqual(await served(ENDING, STARTING), ["a"]);
  assert.deepEqual(await served(ENDED, STARTING), ["503"]);
  assert.deepEqual(await served(ENDED, READY), ["b"]);
});

test("publishNotReadyAddresses makes all of them ready", async (t) => {
  const served = await stage(t, "publishNotReadyAddresses: true, ");
  assert.deepEqual(await served(STARTING, ENDING), ["a", "b"]);
});

const at = (node: string, zone: string) => `{addresses: [127.0.0.1], nodeName: ${node}, zone: ${zone}}`;

test("trafficDistribution prefers the zone of the data plane, which an endpoint of its node tells", async (t) => {
  const served = await stage(t, "trafficDistribution: PreferClose, ");
  assert.deepEqual(await served(at("n2", "z1"), at("n3", "z2")), ["a", "b"], "nobody knows the zone yet");
  assert.deepEqual(await served(at("n1", "z1"), at("n3", "z2"), at("n2", "z1")), ["a", "c"]);
  assert.deepEqual(await served(at("n4", "z2"), at("n3", "z2")), ["a", "b"], "better far than not at all");
});

test("PreferSameNode goes from the node to the zone to everybody, and the local policy nowhere else", async (t) => {
  const near = await stage(t, "trafficDistribution: PreferSameNode, ", { node: "n1", zone: "z1" });
  assert.deepEqual(await near(at("n1", "z1"), at("n2", "z1"), at("n3", "z2")), ["a"]);
  assert.deepEqual(await near(at("n4", "z2"), at("n2", "z1"), at("n3", "z2")), ["b"]);
  assert.deepEqual(await near(at("n4", "z2"), at("n3", "z2")), ["a", "b"]);
  const local = await stage(t, "internalTrafficPolicy: Local, ", { node: "n1", zone: "z1" });
  assert.deepEqual(await local(at("n1", "z1"), at("n2", "z1")), ["a"]);
  assert.deepEqual(await local(at("n2", "z1"), at("n3", "z1")), ["503"]);
});

test("hints of zones are followed when every endpoint has one", async (t) => {
  const served = await stage(t, "", { node: "n1", zone: "z1" });
  const hinted = (zone: string) => `{addresses: [127.0.0.1], hints: {forZones: [{name: ${zone}}]}}`;
  assert.deepEqual(await served(hinted("z2"), hinted("z1")), ["b"]);
  assert.deepEqual(await served(hinted("z2"), hinted("z1"), READY), ["a", "b", "c"]);
});
