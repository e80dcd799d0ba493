import assert from "node:assert/strict";
import { test } from "node:test";
import { createOwnClass } from "../../../src/controller/gateway-class.ts";
import { ApiError } from "../../../src/sources/kubernetes/api-error.ts";
import type { KubernetesClient, KubernetesRequest } from "../../../src/sources/kubernetes/client.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { testClock } from "../../support/gateway/test-clock.ts";

const CLASS = { group: "gateway.networking.k8s.io", kind: "GatewayClass", namespace: "", name: "gwproxy" };

/** Starts a controller's class against a server that answers as told. */
function start() {
  const clock = testClock();
  const server: { isUp: boolean; class: unknown; readonly methods: string[] } = {
    isUp: false,
    class: undefined,
    methods: [],
  };
  const missing = new ApiError("not found", { status: 404 });
  const client: KubernetesClient = {
    server: "http://127.0.0.1",
    request({ method, body }) {
      server.methods.push(method);
      if (!server.isUp) return Promise.reject(new Error("down"));
      if (method === "PATCH") server.class = body;
      return server.class === undefined ? Promise.reject(missing) : Promise.resolve(server.class);
    },
    stream: () => Promise.reject(new Error("not used")),
    close: () => undefined,
  };
  const ownClass = createOwnClass(client, {
    name: "gwproxy",
    controllerName: "c",
    mayCreate: true,
    log: recordingLog().log,
    clock,
  });
  return { clock, server, ownClass };
}

test("only the leader creates the class, and again when it was deleted", async () => {
  const { clock, server, ownClass } = start();
  server.isUp = true;
  ownClass.deleted(CLASS);
  assert.deepEqual(server.methods, []);
  ownClass.lead(true);
  await clock.advance(0);
  ownClass.deleted({ ...CLASS, name: "other" });
  server.class = undefined;
  ownClass.deleted(CLASS);
  await clock.advance(60_000);
  assert.deepEqual(server.methods, ["GET", "PATCH", "GET", "PATCH"]);
});

test("a class that is as it should be is not written again, and one that differs is", async () => {
  const { clock, server, ownClass } = start();
  server.isUp = true;
  ownClass.lead(true);
  await clock.advance(0);
  ownClass.lead(false);
  server.methods.length = 0;
  ownClass.lead(true);
  await clock.advance(60_000);
  assert.deepEqual(server.methods, ["GET"]);
  server.class = { spec: { controllerName: "c" } };
  ownClass.lead(true);
  await clock.advance(60_000);
  assert.deepEqual(server.methods, ["GET", "GET", "PATCH"]);
});

test("a class that cannot be applied is tried again by one timer, whatever happens meanwhile", async () => {
  const { clock, ownClass } = start();
  ownClass.lead(true);
  await clock.advance(0);
  for (let at = 0; at < 5; at++) ownClass.deleted(CLASS);
  await clock.advance(0);
  assert.equal(clock.waiting().length, 1);
  ownClass.lead(false);
  assert.deepEqual(clock.waiting(), []);
});

test("the next try after the server has come back is the last one", async () => {
  const { clock, server, ownClass } = start();
  ownClass.lead(true);
  await clock.advance(0);
  server.isUp = true;
  await clock.advance(60_000);
  assert.deepEqual(server.methods, ["GET", "GET", "PATCH"]);
  assert.deepEqual(clock.waiting(), []);
});

test("the class refers to its parameters", async () => {
  const bodies: unknown[] = [];
  const clock = testClock();
  const client: KubernetesClient = {
    server: "http://127.0.0.1",
    request: ({ body }) => {
      bodies.push(body);
      return Promise.resolve({});
    },
    stream: () => Promise.reject(new Error("not used")),
    close: () => undefined,
  };
  const parametersRef = { name: "defaults", namespace: "gwproxy-system" };
  const { log } = recordingLog();
  const options = { name: "gwproxy", controllerName: "c", mayCreate: true, parametersRef, log, clock };
  createOwnClass(client, options).lead(true);
  await clock.advance(0);
  assert.match(
    JSON.stringify(bodies),
    /"parametersRef":{"group":"gwproxy.dev","kind":"GwParameters","name":"defaults"/,
  );
});

const REF = { group: "gwproxy.dev", kind: "GwParameters", name: "defaults", namespace: "gwproxy-system" };

/** @returns the requests of a leader that may not create its class, on a server that has the given one */
async function requestsFor(current: object | undefined): Promise<KubernetesRequest[]> {
  const requests: KubernetesRequest[] = [];
  const missing = new ApiError("not found", { status: 404 });
  const client: KubernetesClient = {
    server: "http://127.0.0.1",
    request: (request) => {
      requests.push(request);
      return current === undefined ? Promise.reject(missing) : Promise.resolve(current);
    },
    stream: () => Promise.reject(new Error("not used")),
    close: () => undefined,
  };
  const clock = testClock();
  const parametersRef = { name: REF.name, namespace: REF.namespace };
  const { log } = recordingLog();
  const options = { name: "gwproxy", controllerName: "c", mayCreate: false, parametersRef, log, clock };
  const ownClass = createOwnClass(client, options);
  ownClass.lead(true);
  await clock.advance(0);
  ownClass.deleted(CLASS);
  await clock.advance(60_000);
  return requests;
}

test("a class that the chart renders is never created, and corrected only where its parameters differ", async () => {
  const metadata = { resourceVersion: "7" };
  const methods = async (current: object | undefined): Promise<string[]> =>
    (await requestsFor(current)).map(({ method }) => method);
  assert.deepEqual(await methods(undefined), ["GET"], "missing");
  assert.deepEqual(await methods({ metadata, spec: { controllerName: "c", parametersRef: REF } }), ["GET"], "current");
  assert.deepEqual(await methods({ metadata, spec: { controllerName: "other" } }), ["GET"], "another controller's");
  const [, patch] = await requestsFor({ metadata, spec: { controllerName: "c" } });
  assert.deepEqual(patch?.body, { metadata, spec: { parametersRef: REF } });
});
