/** When the page asks the server: after each answer, slower after failures, and never while it is hidden. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startPolling } from "../../../src/console/client/poller.ts";

/** The part of a document that says whether the page is seen. */
class TestDocument extends EventTarget {
  hidden = false;

  show(isShown: boolean): void {
    this.hidden = !isShown;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

test("polling waits between answers, slows down on failures, pauses while hidden, and hurries on a poke", async (t) => {
  const page = new TestDocument();
  Object.defineProperty(globalThis, "document", { value: page, configurable: true });
  t.after(() => Reflect.deleteProperty(globalThis, "document"));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let calls = 0;
  let succeeds = true;
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  };
  const pass = async (ms: number): Promise<number> => {
    t.mock.timers.tick(ms);
    await settle();
    return calls;
  };
  const poller = startPolling(() => {
    calls++;
    return Promise.resolve(succeeds);
  }, 3000);
  await settle();
  assert.deepEqual([calls, await pass(2999), await pass(1)], [1, 1, 2]);
  succeeds = false;
  assert.deepEqual([await pass(3000), await pass(5999), await pass(1), await pass(12_000)], [3, 3, 4, 5]);
  assert.equal(await pass(15_000), 6, "no wait is longer than 15 seconds");
  succeeds = true;
  poller.poke();
  await settle();
  assert.equal(calls, 7);
  page.show(false);
  assert.equal(await pass(60_000), 7);
  page.show(true);
  await settle();
  assert.equal(calls, 8);
  poller.stop();
  assert.equal(await pass(60_000), 8);
  page.show(false);
  page.show(true);
  assert.equal(await pass(60_000), 8);
});
