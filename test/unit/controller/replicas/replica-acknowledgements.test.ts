/** What the data planes of one replica answer, as another replica takes it from a report. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../../../src/api/object.ts";
import { createAcknowledgements, type Acknowledgements } from "../../../../src/controller/acknowledgements.ts";
import { parseReport, printReport } from "../../../../src/controller/replicas/report.ts";
import { ReplicaAcknowledgements } from "../../../../src/controller/replicas/replica-acknowledgements.ts";
import { REPORT_LABELS, reportName } from "../../../../src/controller/replicas/report-store.ts";
import type { Resource, ResourceUpdate } from "../../../../src/ir/resource.ts";
import { testClock, type TestClock } from "../../../support/gateway/test-clock.ts";
import { bind, listener, policy, route, to } from "../../../support/gateway/data-plane.ts";

const GATEWAY = "default/gw";
const NAMESPACE = "gwproxy-system";

interface Replica {
  readonly clock: TestClock;
  readonly acknowledgements: ReplicaAcknowledgements;
  /** What statuses are made of. */
  readonly told: Acknowledgements;
  readonly warnings: string[];
  translate(update: Partial<ResourceUpdate>): void;
  /** The report as it would be written now; undefined for no ConfigMap. */
  report(): string | undefined;
  /** Takes the report of another replica, or its removal. */
  observe(identity: string, text: string | undefined): void;
}

function replica(identity: string): Replica {
  const told = createAcknowledgements();
  const warnings: string[] = [];
  const clock = testClock();
  let wanted: () => string | undefined = () => undefined;
  const acknowledgements = new ReplicaAcknowledgements({
    namespace: NAMESPACE,
    identity,
    store: {
      seen: () => undefined,
      write: (print) => void (wanted = print),
      stop: () => Promise.resolve(),
    },
    answers: {
      onAck: (gateway, resources, stream) => void told.ack(gateway, stream, resources),
      onNack: (gateway, refused, stream) => told.nack(gateway, stream, refused),
      onClose: (_gateway, stream) => told.closed(stream),
    },
    clock,
    log: { warn: (message) => void warnings.push(message) },
  });
  return {
    clock,
    acknowledgements,
    told,
    warnings,
    translate({ set = [], removed = [] }) {
      const update = { set, removed };
      told.forget(GATEWAY, removed);
      told.forgetEverywhere(removed);
      acknowledgements.follow({ update, byGateway: new Map([[GATEWAY, update]]) });
    },
    report: () => wanted(),
    observe(other, text) {
      const name = reportName(other);
      const rest = acknowledgements.take(
        text === undefined
          ? [{ type: "delete", id: { group: "", kind: "ConfigMap", namespace: NAMESPACE, name } }]
          : [{ type: "set", object: reportMap(name, text) }],
      );
      assert.deepEqual(rest, [], "the translator does not see reports");
    },
  };
}

function reportMap(name: string, text: string): KubeObject {
  const metadata = { name, namespace: NAMESPACE, labels: REPORT_LABELS };
  return Object.assign({ apiVersion: "v1", kind: "ConfigMap", metadata }, { data: { "report.json": text } });
}

const EVERYTHING = [bind(), listener(), policy("p", {}), route("r", [to("b")])];
const KEYS = { bind: "80/default/gw", listener: "default/gw.http", policy: "policy/default/p" };

function ack(follower: Replica, stream: symbol, resources: readonly Resource[]): void {
  const acked = resources.map(({ type, key, version }) => ({ type, key, version }));
  follower.acknowledgements.answers.onAck(GATEWAY, acked, stream);
}

test("what a follower's data planes acknowledge counts for the leader, once it holds the same resources", () => {
  const [leader, follower] = [replica("a"), replica("b")];
  leader.acknowledgements.lead(true);
  follower.translate({ set: EVERYTHING });
  assert.equal(follower.report(), undefined, "without a data plane there is nothing to tell");
  const stream = Symbol("plane");
  ack(follower, stream, [bind(), listener()]);
  const early = follower.report();
  assert.ok(early !== undefined);
  leader.observe("b", early);
  assert.equal(leader.told.hasBind(GATEWAY), false, "the leader has not translated anything yet");
  leader.translate({ set: EVERYTHING });
  assert.equal(leader.told.hasBind(GATEWAY), true);
  assert.equal(leader.told.has(KEYS.listener), true);
  assert.equal(leader.told.has(KEYS.policy), false);
  ack(follower, stream, [policy("p", {})]);
  leader.observe("b", follower.report());
  assert.equal(leader.told.has(KEYS.policy), true);
  assert.equal(leader.report(), undefined, "the leader reports nothing");
});

test("a report about other resources than the leader's waits, and what is removed is forgotten", () => {
  const [leader, follower] = [replica("a"), replica("b")];
  leader.acknowledgements.lead(true);
  for (const each of [leader, follower]) each.translate({ set: EVERYTHING });
  ack(follower, Symbol("plane"), EVERYTHING);
  leader.translate({ set: [policy("new", {})] });
  leader.observe("b", follower.report());
  assert.equal(leader.told.has(KEYS.policy), false, "the follower has not read the newest policy");
  follower.translate({ set: [policy("new", {})] });
  leader.observe("b", follower.report());
  assert.deepEqual([leader.told.has(KEYS.policy), leader.told.has("policy/default/new")], [true, false]);
  leader.translate({ removed: [{ type: "Policy", key: KEYS.policy }] });
  assert.equal(leader.told.has(KEYS.policy), false);
});

test("a report from before a resource was removed does not count for the one that comes in its place", async () => {
  const [leader, follower] = [replica("a"), replica("b")];
  leader.acknowledgements.lead(true);
  for (const each of [leader, follower]) each.translate({ set: [...EVERYTHING, policy("late", {})] });
  const stream = Symbol("plane");
  ack(follower, stream, EVERYTHING);
  leader.observe("b", follower.report());
  const again = [bind(), listener(), policy("p", {})];
  const replace = (each: Replica): void => {
    each.translate({ removed: again.map(({ type, key }) => ({ type, key })) });
    each.translate({ set: again });
  };
  const known = (): boolean[] => [
    leader.told.hasBind(GATEWAY),
    leader.told.has(KEYS.listener),
    leader.told.has(KEYS.policy),
  ];
  replace(leader);
  assert.deepEqual(known(), [false, false, false], "the follower has not read the change");
  ack(follower, stream, [policy("late", {})]);
  leader.observe("b", follower.report());
  assert.deepEqual(known(), [false, false, false], "nor has it now, although it tells something new");
  assert.equal(leader.told.has("policy/default/late"), true);
  await leader.clock.advance(4_000);
  replace(follower);
  leader.observe("b", follower.report());
  await leader.clock.advance(2_000);
  assert.deepEqual(known(), [false, false, false], "its data plane has not answered");
  ack(follower, stream, again);
  leader.observe("b", follower.report());
  assert.deepEqual(known(), [true, true, true]);
});

test("an acknowledgement that leaves the report as it was counts once every replica has read the change", async () => {
  const [leader, follower] = [replica("a"), replica("b")];
  leader.acknowledgements.lead(true);
  for (const each of [leader, follower]) each.translate({ set: EVERYTHING });
  const stream = Symbol("plane");
  ack(follower, stream, EVERYTHING);
  leader.observe("b", follower.report());
  for (const each of [leader, follower]) {
    each.translate({ removed: [{ type: "Policy", key: KEYS.policy }] });
    each.translate({ set: [policy("p", {})] });
  }
  ack(follower, stream, EVERYTHING);
  await leader.clock.advance(4_000);
  assert.equal(leader.told.has(KEYS.policy), false);
  await leader.clock.advance(1_000);
  assert.equal(leader.told.has(KEYS.policy), true, "the same text is not written again, so nothing else tells it");
  leader.translate({ removed: [{ type: "Policy", key: KEYS.policy }] });
  await leader.acknowledgements.stop();
  assert.deepEqual(leader.clock.waiting(), []);
});

test("refusals travel with their reason, until they are mended", () => {
  const [leader, follower] = [replica("a"), replica("b")];
  leader.acknowledgements.lead(true);
  for (const each of [leader, follower]) each.translate({ set: EVERYTHING });
  const stream = Symbol("plane");
  ack(follower, stream, [bind(), listener()]);
  const refused = [
    { type: "Policy" as const, key: KEYS.policy, reason: "does not compile" },
    { type: "HttpRoute" as const, key: "httproute/default/r", reason: "no backend" },
  ];
  follower.acknowledgements.answers.onNack(GATEWAY, refused, stream);
  leader.observe("b", follower.report());
  for (const { type, key, reason } of refused) assert.equal(leader.told.nackReason(type, key, GATEWAY), reason);
  assert.equal(leader.told.has(KEYS.policy), false);
  ack(follower, stream, [policy("p", {}), route("r", [to("b")])]);
  leader.observe("b", follower.report());
  for (const { type, key } of refused) assert.equal(leader.told.nackReason(type, key), undefined);
  assert.equal(leader.told.has(KEYS.policy), true);
});

test("what a replica told stays when it goes, and its refusals fall with the next answer of another one", () => {
  const [leader, gone, next] = [replica("a"), replica("b"), replica("c")];
  leader.acknowledgements.lead(true);
  for (const each of [leader, gone, next]) each.translate({ set: EVERYTHING });
  const stream = Symbol("plane");
  ack(gone, stream, [bind(), listener()]);
  gone.acknowledgements.answers.onNack(
    GATEWAY,
    [{ type: "Policy", key: KEYS.policy, reason: "does not compile" }],
    stream,
  );
  leader.observe("b", gone.report());
  leader.observe("b", undefined);
  assert.equal(leader.told.hasBind(GATEWAY), true);
  assert.equal(leader.told.nackReason("Policy", KEYS.policy), "does not compile");
  ack(next, Symbol("plane"), EVERYTHING);
  leader.observe("c", next.report());
  assert.equal(leader.told.nackReason("Policy", KEYS.policy), undefined);
});

test("a follower that leads withdraws its report, and gives one again when it follows", () => {
  const follower = replica("b");
  follower.translate({ set: EVERYTHING });
  ack(follower, Symbol("plane"), EVERYTHING);
  assert.ok(follower.report() !== undefined);
  follower.acknowledgements.lead(true);
  assert.equal(follower.report(), undefined);
  follower.acknowledgements.lead(false);
  assert.ok(follower.report() !== undefined);
});

test("other ConfigMaps are none of its business, and a report that cannot be read is named", () => {
  const leader = replica("a");
  const own = reportMap(reportName("b"), "{}");
  const others: KubeObject[] = [
    { ...own, metadata: { ...own.metadata, namespace: "team" } },
    { ...own, metadata: { ...own.metadata, labels: {} } },
    { ...own, kind: "Secret" },
  ];
  const events = others.map((object) => ({ type: "set" as const, object }));
  assert.deepEqual(leader.acknowledgements.take(events), events);
  for (const text of ["", "{", "[]", '{"gateways":{"a/b":{}},"refused":[]}', '{"gateways":{},"refused":[1]}'])
    leader.observe("b", text);
  assert.equal(leader.warnings.length, 5);
});

test("a report has a bound, whatever the number of Gateways and refusals", () => {
  const missing = Array.from({ length: 100 }, (_, at) => `policy/default/p-${at}`);
  const gateways = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, at) => [`ns/gw-${at}`, { resources: "f".repeat(16), bound: true, missing }]),
  );
  const refusal = { gateway: GATEWAY, type: "Policy", key: "k", reason: "x".repeat(1_024) };
  const { text, leftOut } = printReport({ gateways, refused: Array.from({ length: 1_000 }, () => refusal) });
  assert.ok(text.length <= 500_000, String(text.length));
  assert.ok(leftOut > 0);
  const parsed = parseReport(text);
  assert.equal(Object.keys(parsed?.gateways ?? {}).length + leftOut, 5_000);
  assert.equal(parsed?.refused.length, 100);
});
