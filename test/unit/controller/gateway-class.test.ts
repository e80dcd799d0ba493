import assert from "node:assert/strict";
import { test } from "node:test";
import { createOwnClass } from "../../../src/controller/gateway-class.ts";
import type { KubernetesClient } from "../../../src/sources/kubernetes/client.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";
import { testClock } from "../../support/gateway/test-clock.ts";

const CLASS = { group: "gateway.networking.k8s.io", kind: "GatewayClass", namespace: "", name: "gwproxy" };

/** Starts a controller's class against a server that answers as told. */
function start() {
  const clock = testClock();
  const server = { isUp: false, requests: 0 };
  const client: KubernetesClient = {
    server: "http://127.0.0.1",
    request: () => {
      server.requests++;
      return server.isUp ? Promise.resolve({}) : Promise.reject(new Error("down"));
    },
    stream: () => Promise.reject(new Error("not used")),
    close: () => undefined,
  };
  const ownClass = createOwnClass(client, { name: "gwproxy", controllerName: "c", log: recordingLog().log, clock });
  return { clock, server, ownClass };
}

test("only the leader creates the class, and again when it was deleted", async () => {
  const { clock, server, ownClass } = start();
  server.isUp = true;
  ownClass.deleted(CLASS);
  assert.equal(server.requests, 0);
  ownClass.lead(true);
  ownClass.deleted({ ...CLASS, name: "other" });
  ownClass.deleted(CLASS);
  await clock.advance(60_000);
  assert.equal(server.requests, 2);
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
  assert.equal(server.requests, 2);
  assert.deepEqual(clock.waiting(), []);
});

test("the class refers to its parameters", async () => {
  const bodies: unknown[] = [];
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
  createOwnClass(client, { name: "gwproxy", controllerName: "c", parametersRef, log: recordingLog().log }).lead(true);
  assert.match(
    JSON.stringify(bodies),
    /"parametersRef":{"group":"gwproxy.dev","kind":"GwParameters","name":"defaults"/,
  );
});
