/** Dependencies of load balancing for tests that control the clock and the random numbers. */
import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../src/cel/phases.ts";
import { SharedTable } from "../../../src/lib/shared-table.ts";
import { EndpointStats } from "../../../src/proxy/balancing/endpoint-stats.ts";
import type { EndpointDeps } from "../../../src/proxy/backends/handler.ts";

export interface TestMembers extends EndpointDeps {
  /** Time of the test's clock in milliseconds. */
  now: number;
}

/** Returns dependencies whose random numbers repeat in every run. */
export function testMembers(seed = 1): TestMembers {
  const slots = SharedTable.alone(1024);
  const members: TestMembers = {
    now: 1_700_000_000_000,
    nowMs: () => members.now,
    random: seededRandom(seed),
    expression: (source, place) => compileExpression(source, environmentOf(place)),
    record: (name) => new EndpointStats(slots, name),
  };
  return members;
}

/** Mulberry32, a small random generator: the same seed gives the same numbers in [0, 1). */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
