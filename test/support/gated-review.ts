/** A thread of reviews for tests: each waits until the gate is open, and the body "break" ends the thread. */
import { parentPort, workerData } from "node:worker_threads";
import type { ReviewAnswer } from "../../src/admission/answer.ts";

// Given by startGated in test/unit/admission/webhook.test.ts: whether the gate is open, and how many came to it.
const gate = workerData as Int32Array;

parentPort?.on("message", (body: Uint8Array) => {
  if (new TextDecoder().decode(body) === "break") throw new Error("broken");
  Atomics.add(gate, 1, 1);
  Atomics.notify(gate, 1);
  Atomics.wait(gate, 0, 0);
  const answer: ReviewAnswer = { kind: "verdict", text: "{}", object: "", operation: "", allowed: true };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(answer);
});
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage("ready");
