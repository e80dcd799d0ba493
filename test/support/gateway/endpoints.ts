/** Dependencies of load balancing for tests that control the clock and the random numbers. */
import { compileExpression } from "../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../src/cel/environments/phases.ts";
import { SharedTable } from "../../../src/lib/shared-table.ts";
import { EndpointStats } from "../../../src/proxy/balancing/endpoint-stats.ts";
import type { EndpointDeps } from "../../../src/proxy/backends/handler.ts";
import { seededRandom } from "../fixtures/seed.ts";

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
