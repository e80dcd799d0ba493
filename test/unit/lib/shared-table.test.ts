import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { monotonicMs } from "../../../src/lib/time/monotonic.ts";
import { allocateSlots, MAX_THREADS, SharedTable } from "../../../src/lib/shared-table.ts";
import type { HammerData } from "../../support/fixtures/hammer-slots.ts";

interface Hammer {
  readonly worker: Worker;
  readonly underWay: Promise<void>;
  /** Its last word: what was wrong. */
  readonly verdict: Promise<string>;
}

function hammer(data: HammerData): Hammer {
  const worker = new Worker(new URL("../../support/fixtures/hammer-slots.ts", import.meta.url), { workerData: data });
  const underWay = Promise.withResolvers<void>();
  const verdict = Promise.withResolvers<string>();
  worker.on("message", (message: string) => (message === "under way" ? underWay.resolve() : verdict.resolve(message)));
  worker.on("error", verdict.reject);
  return { worker, underWay: underWay.promise, verdict: verdict.promise };
}

test("a name leads to one slot, in each thread's table, and two names to two", () => {
  const buffer = allocateSlots(64, 2);
  const [one, other] = [new SharedTable(buffer, 0), new SharedTable(buffer, 1)];
  const a = one.claim("a");
  assert.equal(other.claim("a").intsAt, a.intsAt);
  assert.notEqual(other.claim("b").intsAt, a.intsAt);
  a.doubles[a.doublesAt + 3] = 0.5;
  const seen = other.claim("a");
  assert.equal(seen.doubles[seen.doublesAt + 3], 0.5);
  assert.equal(one.used(), 2);
});

test("a slot is free when its last claim in its last thread is released", () => {
  const buffer = allocateSlots(64, 2);
  const [one, other] = [new SharedTable(buffer, 0), new SharedTable(buffer, 1)];
  const first = one.claim("a");
  const second = one.claim("a");
  assert.equal(second, first);
  const far = other.claim("a");
  first.release();
  far.release();
  assert.equal(one.used(), 1);
  second.release();
  assert.equal(one.used(), 0);
});

test("a name that returns finds its content, unless the place was needed", () => {
  const table = SharedTable.alone(2);
  const a = table.claim("a");
  Atomics.store(a.ints, a.intsAt + 1, 7);
  a.release();
  const again = table.claim("a");
  assert.equal(again.ints[again.intsAt + 1], 7);
  again.release();
  table.claim("b");
  const c = table.claim("c");
  assert.deepEqual([...c.ints.subarray(c.intsAt, c.intsAt + 4)], [0, 0, 0, 0]);
  c.release();
  const lost = table.claim("a");
  assert.equal(lost.ints[lost.intsAt + 1], 0);
});

test("a full table gives slots of the thread's own and says so", () => {
  const table = SharedTable.alone(3);
  const names = ["a", "b", "c", "d"];
  const slots = names.map((name) => table.claim(name));
  assert.deepEqual(
    slots.map(({ isShared }) => isShared),
    [true, true, true, false],
  );
  assert.equal(table.rejectedClaims, 1);
  const own = slots[3];
  assert.ok(own);
  own.hold();
  assert.equal(own.held, 1);
  own.letGo();
  own.release();
  slots[0]?.release();
  assert.equal(table.claim("d").isShared, true);
});

test("a slot stays while a call is under way, and a call is counted for all threads", () => {
  const buffer = allocateSlots(64, 2);
  const [one, other] = [new SharedTable(buffer, 0), new SharedTable(buffer, 1)];
  const here = one.claim("a");
  const there = other.claim("a");
  here.hold();
  there.hold();
  assert.equal(here.held, 2);
  here.release();
  there.release();
  assert.equal(one.used(), 1);
  there.letGo();
  here.letGo();
  assert.equal(here.held, 0);
  assert.equal(one.used(), 0);
});

test("what a dead thread held is taken back, and nothing of the others", () => {
  const buffer = allocateSlots(64, 3);
  const [main, dead, alive] = [new SharedTable(buffer, 0), new SharedTable(buffer, 1), new SharedTable(buffer, 2)];
  dead.claim("only the dead").hold();
  const kept = alive.claim("both");
  const shared = dead.claim("both");
  for (const slot of [kept, shared, shared]) slot.hold();
  main.forget(1);
  assert.equal(kept.held, 1);
  assert.equal(main.used(), 1);
});

test("threads that claim and release the same few names at once agree on every slot", async () => {
  const names = 48;
  const slots = allocateSlots(40, 4);
  const agreed = new SharedArrayBuffer(names * 4);
  const workers = [0, 1, 2, 3].map((thread) => hammer({ slots, agreed, thread, names, turns: 60_000 }));
  assert.deepEqual(await Promise.all(workers.map(({ verdict }) => verdict)), ["", "", "", ""]);
  const table = new SharedTable(slots, 0);
  assert.equal(table.used(), 0);
});

test("a thread that dies while it claims leaves a table that works, without its claims", async () => {
  const names = 30;
  const slots = allocateSlots(32, 3);
  const main = new SharedTable(slots, 0);
  for (let round = 0; round < 5; round++) {
    // Each of the two keeps its own account of what was agreed: the dead one would leave entries.
    const account = (): SharedArrayBuffer => new SharedArrayBuffer(names * 4);
    const victim = hammer({ slots, agreed: account(), thread: 1, names, turns: 1e9 });
    const other = hammer({ slots, agreed: account(), thread: 2, names, turns: 20_000 });
    await victim.underWay;
    await victim.worker.terminate();
    main.forget(1);
    assert.equal(await other.verdict, "");
    assert.equal(main.used(), 0);
    const slot = main.claim(`name ${round}`);
    assert.equal(slot.held, 0);
    slot.release();
  }
});

test("more threads than a control word has bits are refused", () => {
  assert.throws(() => allocateSlots(8, MAX_THREADS + 1), RangeError);
  assert.throws(() => new SharedTable(allocateSlots(8, 2), 2), RangeError);
});

test("threads read the same time", async () => {
  const before = monotonicMs();
  const source = new URL("../../../src/lib/time/monotonic.ts", import.meta.url).href;
  const code = `import { parentPort } from "node:worker_threads"; import { monotonicMs } from "${source}"; parentPort.postMessage(monotonicMs());`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  const [there] = (await once(worker, "message")) as [number];
  // Half a millisecond is far more than two looks at a clock differ, and far less than threads start apart.
  assert.ok(before - 0.5 <= there && there <= monotonicMs() + 0.5);
});
