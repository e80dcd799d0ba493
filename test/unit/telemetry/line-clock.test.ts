import assert from "node:assert/strict";
import { test } from "node:test";
import { LineClock } from "../../../src/telemetry/line-clock.ts";

const START = Date.UTC(2026, 10, 21, 22, 38, 56, 7);

/** Clocks that a test sets. */
function clockAt(): { clock: LineClock; wall: number; steady: number } {
  const state = { wall: START, steady: 0, clock: undefined as unknown as LineClock }; // set in the next statement
  state.clock = new LineClock({ wallMs: () => state.wall, steadyMs: () => state.steady, originMs: START + 0.25 });
  return state;
}

test("a time has the microseconds that the wall clock lacks", () => {
  const state = clockAt();
  assert.equal(state.clock.now(), "2026-11-21T22:38:56.007250Z");
  state.steady = 0.5;
  assert.equal(state.clock.now(), "2026-11-21T22:38:56.007750Z");
  state.wall = START + 994;
  state.steady = 994.125;
  assert.equal(state.clock.now(), "2026-11-21T22:38:57.001375Z");
});

test("when the wall clock is set the time follows, and stays within the millisecond that it says", () => {
  const state = clockAt();
  state.wall = START + 3_600_000;
  state.steady = 10;
  assert.equal(state.clock.now(), "2026-11-21T23:38:56.007000Z");
  state.steady = 10.5;
  assert.equal(state.clock.now(), "2026-11-21T23:38:56.007500Z");
  state.wall = START;
  state.steady = 11;
  assert.match(state.clock.now(), /^2026-11-21T22:38:56\.00799\dZ$/);
});

test("the system's clocks agree with each other", () => {
  const clock = new LineClock();
  const before = Date.now();
  const text = clock.now();
  const after = Date.now();
  const ms = Date.parse(text);
  assert.ok(ms >= before && ms <= after, `${before} ${text} ${after}`);
});
