/** What a data plane reads from the variables of its pod, and what it refuses to start with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readPodEnvironment } from "../../../src/cli/run/pod-environment.ts";

const KEY = "0123456789abcdef".repeat(4);

test("nothing set means no minimum, five seconds at most, and the whole machine", () => {
  const expected = { minDrainMs: 0, maxDrainMs: 5_000, cpuLimit: undefined, sessionKey: undefined };
  assert.deepEqual(readPodEnvironment({}), expected);
  assert.deepEqual(readPodEnvironment({ CPU_LIMIT: "", SESSION_KEY: "" }), expected);
});

test("what a pod that was made for a Gateway has is read", () => {
  const found = readPodEnvironment({
    TERMINATION_GRACE_PERIOD_SECONDS: "60",
    CONNECTION_MIN_TERMINATION_DEADLINE: "10s",
    CPU_LIMIT: "2",
    SESSION_KEY: KEY,
  });
  assert.deepEqual([found.minDrainMs, found.maxDrainMs, found.cpuLimit], [10_000, 55_000, 2]);
  assert.equal(Buffer.from(found.sessionKey ?? []).toString("hex"), KEY);
});

const GRACE: readonly [string, number][] = [
  ["60", 55_000],
  ["11", 6_000],
  ["10", 9_000],
  ["2", 1_000],
  ["1", 1_000],
  ["0", 1_000],
  ["1m30s", 85_000],
];

for (const [grace, expected] of GRACE) {
  test(`a grace period of ${grace} leaves ${expected} ms to drain`, () => {
    assert.equal(readPodEnvironment({ TERMINATION_GRACE_PERIOD_SECONDS: grace }).maxDrainMs, expected);
  });
}

test("a deadline of its own beats the grace period, and never lies before the minimum", () => {
  const variables = { TERMINATION_GRACE_PERIOD_SECONDS: "60", CONNECTION_TERMINATION_DEADLINE: "7" };
  assert.equal(readPodEnvironment(variables).maxDrainMs, 7_000);
  assert.equal(readPodEnvironment({ ...variables, CONNECTION_MIN_TERMINATION_DEADLINE: "20" }).maxDrainMs, 20_000);
});

test("part of a core is one core", () => {
  assert.equal(readPodEnvironment({ CPU_LIMIT: "0.5" }).cpuLimit, 1);
});

const UNREADABLE: readonly [string, string][] = [
  ["TERMINATION_GRACE_PERIOD_SECONDS", "soon"],
  ["CONNECTION_MIN_TERMINATION_DEADLINE", "-1"],
  ["CONNECTION_TERMINATION_DEADLINE", "10 s"],
  ["CPU_LIMIT", "0"],
  ["CPU_LIMIT", "500m"],
  ["SESSION_KEY", "abc"],
  ["SESSION_KEY", `${KEY}00`],
];

for (const [name, text] of UNREADABLE) {
  test(`${name}=${text} stops the start`, () => {
    assert.throws(
      () => readPodEnvironment({ [name]: text }),
      (error: Error) =>
        error.message.startsWith(`${name}: `) && (name !== "SESSION_KEY" || !error.message.includes(text)),
    );
  });
}
