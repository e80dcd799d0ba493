import assert from "node:assert/strict";
import { test } from "node:test";
import { collectWhenIdle } from "../../../src/lib/collect-when-idle.ts";

test("a thread that rests gives back what is no longer needed", async (t) => {
  const collected = Promise.withResolvers<string>();
  const registry = new FinalizationRegistry<string>((name) => collected.resolve(name));
  registry.register({}, "garbage");
  collectWhenIdle();
  // Nothing else keeps the process, and it allocates too little to be collected by itself.
  const alive = setInterval(() => undefined, 60_000);
  t.after(() => clearInterval(alive));
  assert.equal(await collected.promise, "garbage");
  assert.ok(registry, "one that is itself collected says nothing");
});
