/** How often a replica writes its report, and what becomes of the object. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReportStore, reportName } from "../../../../src/controller/replicas/report-store.ts";
import type { KubernetesClient, KubernetesRequest } from "../../../../src/sources/kubernetes/client.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { testClock, type TestClock } from "../../../support/gateway/test-clock.ts";

const PATH = `/api/v1/namespaces/system/configmaps/${reportName("pod-1")}`;
const OWNER = { apiVersion: "v1", kind: "Pod", name: "pod-1", uid: "u1" };

interface Started {
  readonly store: ReportStore;
  readonly clock: TestClock;
  readonly server: { isUp: boolean; readonly requests: KubernetesRequest[] };
  /** Method and report of each request. */
  written(): readonly (readonly [method: string, text: string | undefined])[];
}

function start(): Started {
  const clock = testClock();
  const server: Started["server"] = { isUp: true, requests: [] };
  const client: KubernetesClient = {
    server: "http://127.0.0.1",
    request(request) {
      server.requests.push(request);
      return server.isUp ? Promise.resolve({}) : Promise.reject(new Error("down"));
    },
    stream: () => Promise.reject(new Error("not used")),
    close: () => undefined,
  };
  const place = { namespace: "system", identity: "pod-1", fieldManager: "c", owner: OWNER };
  const store = new ReportStore({ client, ...place, clock, log: recordingLog().log });
  const written: Started["written"] = () =>
    server.requests.map(({ method, body }) => {
      const data = (body as { data?: Record<string, string> } | undefined)?.data; // of the ConfigMap that is applied
      return [method, data?.["report.json"]] as const;
    });
  return { store, clock, server, written };
}

test("changes in quick succession are one write, of the last state, and the Pod owns the object", async () => {
  const { store, clock, server, written } = start();
  let text = "1";
  for (const next of ["2", "3"]) {
    store.write(() => text);
    await clock.advance(100);
    text = next;
  }
  await clock.advance(500);
  assert.deepEqual(written(), [["PATCH", "3"]]);
  const [request] = server.requests;
  assert.ok(request);
  assert.equal(request.path, PATH);
  const { metadata } = request.body as { metadata: { ownerReferences: unknown } }; // of the ConfigMap that is applied
  assert.deepEqual(metadata.ownerReferences, [OWNER]);
});

test("what the cluster has already is not written: neither the same text nor a removal of nothing", async () => {
  const { store, clock, server } = start();
  store.write(() => undefined);
  await clock.advance(500);
  store.seen("1");
  store.write(() => "1");
  await clock.advance(500);
  assert.deepEqual(server.requests, []);
});

test("a write that fails is tried again, with what is to be told then", async () => {
  const { store, clock, server, written } = start();
  server.isUp = false;
  let text = "1";
  store.write(() => text);
  await clock.advance(500);
  assert.deepEqual(written(), [["PATCH", "1"]]);
  server.isUp = true;
  text = "2";
  await clock.advance(10_000);
  assert.deepEqual(written().slice(1), [["PATCH", "2"]]);
  await clock.advance(60_000);
  assert.equal(server.requests.length, 2);
});

test("a replica that stops takes its report away, and writes nothing after that", async () => {
  const { store, clock, server, written } = start();
  store.write(() => "1");
  await clock.advance(500);
  await store.stop();
  assert.deepEqual(written().at(-1), ["DELETE", undefined]);
  store.write(() => "2");
  await clock.advance(60_000);
  assert.equal(server.requests.length, 2);
});
