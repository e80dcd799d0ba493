import assert from "node:assert/strict";
import { test } from "node:test";
import { RecentMap } from "../../../src/lib/recent-map.ts";

test("the entry that was not asked for the longest makes room", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  assert.equal(map.get("a"), 1);
  map.set("c", 3);
  assert.equal(map.get("b"), undefined);
  assert.equal(map.get("a"), 1);
  map.set("a", 4);
  map.set("d", 5);
  assert.equal(map.get("c"), undefined);
  assert.equal(map.get("a"), 4);
});
