/** Entry of a webhook thread: answers one AdmissionReview after the other. review-threads.ts starts it. */
import { parentPort } from "node:worker_threads";
import { answerReview } from "./answer.ts";
import { validate } from "./validate.ts";

parentPort?.on("message", (body: Uint8Array) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(answerReview(body, validate));
});
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage("ready");
