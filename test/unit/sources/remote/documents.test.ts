import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createDocuments,
  type JwksDocument,
  type Documents,
  type StoredDocument,
  type JwksRequest,
} from "../../../../src/sources/remote/documents.ts";
import { recordingLog } from "../../../support/gateway/silent-log.ts";
import { testClock, type TestClock } from "../../../support/gateway/test-clock.ts";

const MINUTE = 60_000;

interface Bench {
  readonly documents: Documents;
  readonly clock: TestClock;
  /** What each fetch asked, and how it is answered. */
  readonly asked: string[];
  readonly delivered: (readonly [string, JwksDocument | undefined])[];
  readonly saved: string[];
  answer: (wanted: JwksRequest, address: string) => string | Error;
}

function bench(stored: Readonly<Record<string, StoredDocument>> = {}): Bench {
  const clock = testClock();
  const one: Omit<Bench, "documents"> = { clock, asked: [], delivered: [], saved: [], answer: () => "good" };
  const documents = createDocuments({
    log: recordingLog().log,
    clock,
    random: () => 0,
    findError: (text) => (text.startsWith("good") ? undefined : "not a document"),
    deliver: (key, document) => void one.delivered.push([key, document]),
    stored: new Map(Object.entries(stored)),
    store: {
      save: ({ key }, { text }) => void one.saved.push(`${key}=${text}`),
      remove: (key) => void one.saved.push(`${key} gone`),
    },
    async fetch(wanted, { host }, signal) {
      one.asked.push(`${wanted.key}@${host}`);
      const answer = one.answer(wanted, host);
      if (answer instanceof Error) throw answer;
      signal.throwIfAborted();
      return answer;
    },
  });
  return Object.assign(one, { documents });
}

function wanted(key: string, more: Partial<JwksRequest> = {}): JwksRequest {
  const addresses = [{ host: "a", port: 80, unixPath: "" }];
  return { key, url: `http://${key}/`, tls: undefined, addresses, cacheMs: 5 * MINUTE, ...more };
}

test("a document is fetched at once, delivered, kept, and fetched again when it is too old", async () => {
  const one = bench();
  one.documents.want([wanted("k")]);
  await one.clock.advance(0);
  assert.deepEqual(one.delivered, [["k", { text: "good" }]]);
  assert.deepEqual(one.saved, ["k=good"]);
  await one.clock.advance(5 * MINUTE - 1);
  assert.equal(one.asked.length, 1);
  one.answer = () => "good, and new";
  await one.clock.advance(1);
  assert.equal(one.asked.length, 2);
  assert.deepEqual(one.delivered[1], ["k", { text: "good, and new" }]);
  await one.clock.advance(5 * MINUTE);
  assert.equal(one.asked.length, 3);
  assert.equal(one.delivered.length, 2, "an equal text is no news");
});

test("a failure is tried again from 200 ms doubling to 15 s, and said once", async () => {
  const one = bench();
  one.answer = () => new Error("connection refused");
  one.documents.want([wanted("k")]);
  const waits: number[] = [];
  for (let at = 0; at < 9; at++) {
    await one.clock.advance(waits.at(-1) ?? 0);
    waits.push(...one.clock.waiting());
  }
  assert.deepEqual(waits, [200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000]);
  assert.deepEqual(one.delivered, [["k", { error: "connection refused" }]]);
  one.answer = () => "good";
  await one.clock.advance(15_000);
  assert.deepEqual(one.delivered[1], ["k", { text: "good" }]);
  assert.deepEqual(one.clock.waiting(), [5 * MINUTE]);
});

test("what was good stays when its server breaks or answers garbage", async () => {
  const one = bench();
  one.documents.want([wanted("k")]);
  await one.clock.advance(0);
  for (const answer of [new Error("reset"), "<html>"]) {
    one.answer = () => answer;
    await one.clock.advance(5 * MINUTE);
  }
  assert.deepEqual(one.delivered, [["k", { text: "good" }]]);
  assert.ok((one.clock.waiting()[0] ?? 0) <= 15_000);
});

test("a first answer that cannot be used is an error", async () => {
  const one = bench();
  one.answer = () => "<html>";
  one.documents.want([wanted("k")]);
  await one.clock.advance(0);
  assert.deepEqual(one.delivered, [["k", { error: "not a document" }]]);
});

test("one document is fetched once for all who want it, as often as the most demanding says", async () => {
  const one = bench();
  one.documents.want([wanted("k"), wanted("k", { cacheMs: MINUTE }), wanted("k", { cacheMs: 9 * MINUTE })]);
  await one.clock.advance(0);
  assert.equal(one.asked.length, 1);
  assert.deepEqual(one.clock.waiting(), [MINUTE]);
  one.documents.want([wanted("k", { cacheMs: 2 * MINUTE })]);
  assert.deepEqual(one.clock.waiting(), [2 * MINUTE]);
  one.documents.want([wanted("k", { cacheMs: 1 })]);
  assert.deepEqual(one.clock.waiting(), [1000], "no server is asked more often than once a second");
});

test("the next try asks the next address, and one that appears is asked at once", async () => {
  const one = bench();
  one.answer = (_wanted, host) => (host === "c" ? "good" : new Error("down"));
  const at = (...hosts: string[]) =>
    wanted("k", { addresses: hosts.map((host) => ({ host, port: 80, unixPath: "" })) });
  one.documents.want([at()]);
  await one.clock.advance(0);
  assert.deepEqual(one.delivered, [["k", { error: "the server has no address that is ready" }]]);
  one.documents.want([at("a", "b")]);
  await one.clock.advance(0);
  await one.clock.advance(400);
  assert.deepEqual(one.asked, ["k@b", "k@a"]);
  one.documents.want([at("c")]);
  await one.clock.advance(0);
  assert.deepEqual(one.delivered[2], ["k", { text: "good" }]);
});

test("what is no longer wanted is given up, also while it is being fetched", async () => {
  const one = bench();
  one.documents.want([wanted("a"), wanted("b")]);
  one.documents.want([wanted("b")]);
  await one.clock.advance(0);
  assert.deepEqual(one.delivered, [
    ["a", undefined],
    ["b", { text: "good" }],
  ]);
  assert.deepEqual(one.saved, ["a gone", "b=good"]);
  one.documents.stop();
  await one.clock.advance(10 * MINUTE);
  assert.deepEqual(one.clock.waiting(), []);
});

test("what was kept over a restart is used without a fetch until it is too old", async () => {
  const now = testClock().now();
  const one = bench({
    fresh: { text: "good, kept", fetchedAtMs: now - MINUTE },
    old: { text: "good, old", fetchedAtMs: now - 6 * MINUTE },
    broken: { text: "<html>", fetchedAtMs: now },
  });
  one.documents.want([wanted("fresh"), wanted("old"), wanted("broken")]);
  assert.deepEqual(one.delivered, [
    ["fresh", { text: "good, kept" }],
    ["old", { text: "good, old" }],
  ]);
  await one.clock.advance(0);
  assert.deepEqual(one.asked.sort(), ["broken@a", "old@a"]);
  await one.clock.advance(4 * MINUTE);
  assert.ok(one.asked.includes("fresh@a"));
});

test("only so many servers are asked at once, and each gets its turn", async () => {
  const one = bench();
  one.documents.want(Array.from({ length: 100 }, (_, at) => wanted(`k${at}`)));
  await Promise.resolve();
  await Promise.resolve();
  assert.ok(one.asked.length <= 16, `${one.asked.length} at once`);
  for (let at = 0; at < 20; at++) await one.clock.advance(0);
  assert.equal(one.delivered.length, 100);
  assert.equal(new Set(one.asked).size, 100);
});
