/** How many threads serve when nobody says it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { usualWorkers } from "../../../src/cli/commands/options.ts";

test("there is a thread for each core, fewer where the limit says so, and never more", () => {
  const usual = [undefined, "0", "none", "1", "1500m", "2.5", "3", "64"].map((limit) =>
    usualWorkers(limit, 4, "linux"),
  );
  assert.deepEqual(usual, [4, 4, 4, 1, 2, 3, 3, 4]);
  assert.equal(usualWorkers("200m", 4, "linux"), 1);
});

test("one thread serves where the system does not deal connections out", () => {
  assert.equal(usualWorkers(undefined, 8, "darwin"), 1);
});
