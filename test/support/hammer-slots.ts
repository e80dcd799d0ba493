/**
 * A thread that claims and releases slots of a table at random, and checks on the way that all holders of a name have
 * the same slot and that no slot has two names. Ends itself after its turns; says what was wrong, if anything.
 */
import { parentPort, workerData } from "node:worker_threads";
import { SharedSlots, type Slot } from "../../src/lib/shared-table.ts";

export interface HammerData {
  readonly slots: SharedArrayBuffer;
  /** One word for each name: how many hold it, and the place that they say it has. */
  readonly agreed: SharedArrayBuffer;
  readonly thread: number;
  readonly names: number;
  readonly turns: number;
}

// Made by the test.
const { slots, agreed, thread, names, turns } = workerData as HammerData;
const table = new SharedSlots(slots, thread);
const words = new Int32Array(agreed);
const held = new Map<number, Slot>();
const faults: string[] = [];

/** @returns false when others hold the name at another place */
function agree(name: number, place: number): boolean {
  for (;;) {
    const word = Atomics.load(words, name);
    const holders = word & 0xff;
    if (holders > 0 && word >>> 8 !== place) return false;
    if (Atomics.compareExchange(words, name, word, (place << 8) | (holders + 1)) === word) return true;
  }
}

function take(name: number): void {
  const slot = table.claim(`name ${name}`);
  if (!slot.isShared) {
    slot.release();
    return;
  }
  const before = Atomics.compareExchange(slot.ints, slot.intsAt + 1, 0, name + 1);
  if (before !== 0 && before !== name + 1) faults.push(`${name} has the slot of ${before - 1}`);
  if (!agree(name, slot.intsAt)) faults.push(`${name} has several slots`);
  slot.hold();
  held.set(name, slot);
}

function give(name: number, slot: Slot): void {
  held.delete(name);
  Atomics.sub(words, name, 1);
  slot.letGo();
  slot.release();
}

for (let turn = 0; turn < turns && faults.length === 0; turn++) {
  const name = Math.floor(Math.random() * names);
  const slot = held.get(name);
  if (slot === undefined) take(name);
  else give(name, slot);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  if (turn === 500) parentPort?.postMessage("under way");
}
for (const [name, slot] of held) give(name, slot);
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(faults.join("; "));
