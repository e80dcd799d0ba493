/** Who writes, on a real API server: one replica at a time, another one when it falls silent, nobody without the server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createKubernetesClient, type KubernetesClient } from "../../src/sources/kubernetes/client.ts";
import { createLeader, type Leader } from "../../src/sources/kubernetes/leader.ts";
import { eventually } from "../support/gateway/process.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { testClock, type TestClock } from "../support/gateway/test-clock.ts";
import { startApiServer, type ApiServer } from "../testbed/api-server.ts";

interface Replica {
  readonly leader: Leader;
  readonly clock: TestClock;
  readonly lines: readonly string[];
  leads(): boolean;
  /** Moves its clock on, and resolves when it has asked the server again and its next turn is planned. */
  turn(ms: number): Promise<void>;
}

let server: ApiServer;
let client: KubernetesClient;

before(async () => {
  server = await startApiServer();
  client = await createKubernetesClient(server.kubeconfig);
});

after(async () => {
  client?.close();
  await server?.stop();
});

async function start(identity: string, name: string, namespace = "default"): Promise<Replica> {
  const clock = testClock();
  const { log, lines } = recordingLog();
  let leads = false;
  const onChange = (isLeader: boolean): void => void (leads = isLeader);
  const leader = createLeader({ client, namespace, name, identity, clock, log, onChange });
  const planned = (): Promise<void> => eventually(async () => assert.equal(clock.waiting().length, 1));
  leader.start();
  await planned();
  return {
    leader,
    clock,
    lines,
    leads: () => leads,
    async turn(ms) {
      await clock.advance(ms);
      await planned();
    },
  };
}

async function holder(name: string): Promise<string> {
  return server.kubectl(["get", "lease", name, "-o", "jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}"]);
}

test("one of two replicas writes, and the other one when it has given the lease back", async () => {
  const [a, b] = [await start("a", "given-back"), await start("b", "given-back")];
  assert.deepEqual([a.leads(), b.leads()], [true, false]);
  await b.turn(2_000);
  assert.equal(b.leads(), false);
  await a.leader.stop();
  assert.equal(a.leads(), false);
  await b.turn(2_000);
  assert.equal(b.leads(), true);
  assert.equal(await holder("given-back"), "b 1");
  await b.leader.stop();
});

test("a replica that falls silent is followed by another one, and learns of it when it wakes", async () => {
  const [a, b] = [await start("a", "silent"), await start("b", "silent")];
  await b.turn(14_000);
  assert.equal(b.leads(), false, "its time is measured from when its last sign was seen");
  await a.turn(2_000);
  await b.turn(2_000);
  assert.equal(b.leads(), false, "a sign was seen");
  await b.turn(16_000);
  assert.equal(b.leads(), true);
  await a.turn(2_000);
  assert.equal(a.leads(), false);
  await Promise.all([a.leader.stop(), b.leader.stop()]);
});

test("a namespace that is missing is complained of once, with the next step", async () => {
  const a = await start("a", "nowhere", "missing");
  await a.turn(2_000);
  assert.equal(a.leads(), false);
  assert.equal(a.lines.length, 1);
  assert.match(a.lines[0] ?? "", /create the namespace, or name another with POD_NAMESPACE/);
  await a.leader.stop();
});

test("without an API server a replica stops writing before another one could start", async () => {
  const a = await start("a", "alone");
  assert.equal(a.leads(), true);
  await server.crash();
  await a.turn(2_000);
  assert.equal(a.leads(), true, "a short silence is nothing");
  await a.turn(9_000);
  assert.equal(a.leads(), false);
  await server.restart();
  await a.turn(2_000);
  assert.equal(a.leads(), true);
  await a.leader.stop();
});
