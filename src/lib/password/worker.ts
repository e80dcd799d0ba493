/** The worker thread that verifies one password at a time for checker.ts, and answers true or false. */
import { parentPort } from "node:worker_threads";
import { verifyPassword } from "./verify.ts";

export interface PasswordQuestion {
  readonly password: Uint8Array;
  readonly hash: string;
}

parentPort?.on("message", ({ password, hash }: PasswordQuestion) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(verifyPassword(Buffer.from(password), hash));
});
