/** What the list of requests in progress keeps of those that are over: nothing, from one minor collection to the next. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { TaskRegistry } from "../../../../src/proxy/listeners/tasks.ts";
import { exchangeOf, PLAIN } from "../../../bench/in-process.ts";

/** Enough that a Set would have replaced its table many times between two collections. */
const REQUESTS = 200;
const ROUNDS = 40;
const KIB_EACH = 8;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { type: "minor" | "major" }) => void;

test("requests that are over go with the next minor collection", () => {
  const registry = new TaskRegistry();
  const open = Array.from({ length: 16 }, () => enter(registry));
  const serve = (): void => {
    for (let at = 0; at < REQUESTS; at++) {
      const finished = open.shift();
      if (finished !== undefined) registry.finished(finished);
      open.push(enter(registry));
    }
    collect({ type: "minor" });
  };
  serve();
  collect({ type: "major" });
  const before = getHeapStatistics().used_heap_size;
  for (let round = 0; round < ROUNDS; round++) serve();
  const grown = getHeapStatistics().used_heap_size - before;
  const all = REQUESTS * ROUNDS * KIB_EACH * 1024;
  assert.ok(grown < all / 50, `${grown} of ${all} bytes are still there`);
});

test("the requests in progress are listed below their connection, the oldest first", () => {
  const registry = new TaskRegistry();
  const exchanges = Array.from({ length: 5 }, () => enter(registry));
  for (const at of [0, 3, 1]) {
    const [finished] = exchanges.splice(at, 1);
    assert.ok(finished !== undefined);
    registry.finished(finished);
    // A second report of the end takes nobody else's place.
    registry.finished(finished);
  }
  const listener = { bind: "80/default/gw", gateway: "default/gw", port: 80, boundPort: 80 };
  const { tasks } = registry.list([{ listener, clients: ["10.1.2.3:4711"] }], 10);
  const requests = tasks[0]?.children[0]?.children ?? [];
  assert.deepEqual(
    requests.map(({ name }) => name),
    exchanges.map(({ method }) => method),
  );
  assert.equal(requests.length, 2);
});

let made = 0;

function enter(registry: TaskRegistry) {
  const exchange = exchangeOf(PLAIN, `METHOD-${made++}`);
  exchange.setRoot(
    "jwt",
    Array.from({ length: KIB_EACH * 128 }, () => made),
  );
  registry.entered(exchange);
  return exchange;
}
