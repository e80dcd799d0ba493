import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "../../../../src/lib/collections/collection.ts";
import { Graph, type Input } from "../../../../src/lib/collections/graph.ts";
import { assertProperty } from "../../../support/fixtures/seed.ts";

interface Item {
  readonly group: string;
  readonly next: string;
  readonly weight: number;
}

/** Reads by key and by index, across three levels, so that every way of depending is in it. */
function sampleGraph(): { graph: Graph; items: Input<Item>; limits: Input<number>; state: () => unknown } {
  const graph = new Graph();
  const items = graph.input<Item>("items");
  const limits = graph.input<number>("limits");
  const byGroup = items.index((item) => [item.group]);
  const neighbours = graph.derive("neighbours", items, (_key, item, read) => ({
    group: item.group,
    sum: item.weight + (read.get(items, item.next)?.weight ?? 0),
  }));
  const sumsOfGroup = neighbours.groups(({ group, sum }) => [{ group, member: String(sum) }]);
  const bySum = neighbours.index((value) => [String(value.sum % 3)]);
  const groups = graph.derive("groups", limits, (key, limit, read) => {
    const found = read.byIndex(byGroup, key);
    return found.length === 0 ? undefined : { limit, keys: found.map((entry) => entry.key) };
  });
  const summary = graph.derive("summary", groups, (key, group, read) => ({
    size: group.keys.length,
    over: group.keys.some((name) => (read.get(neighbours, name)?.sum ?? 0) > group.limit),
    sameSum: read.byIndex(bySum, String(group.limit % 3)).map((entry) => entry.key),
    sums: read.members(sumsOfGroup, key),
    count: read.size(sumsOfGroup, key),
    key,
  }));
  const state = () =>
    [neighbours, groups, summary].map((collection) =>
      [...collection.keys()].sort().map((key) => [key, collection.get(key)]),
    );
  return { graph, items, limits, state };
}

const NAMES = ["a", "b", "c", "d"];
const name = fc.constantFrom(...NAMES);
const item = fc.record({ group: name, next: name, weight: fc.integer({ min: 0, max: 5 }) });
const event = fc.oneof(
  fc.record({ type: fc.constant("item" as const), key: name, value: fc.option(item, { nil: undefined }) }),
  fc.record({
    type: fc.constant("limit" as const),
    key: name,
    value: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
  }),
);

test("after any events in any batches the state equals a computation from scratch", () => {
  assertProperty(
    fc.property(fc.array(fc.array(event, { maxLength: 4 }), { maxLength: 20 }), (batches) => {
      const live = sampleGraph();
      const items = new Map<string, Item>();
      const limits = new Map<string, number>();
      for (const batch of batches) {
        for (const { type, key, value } of batch) {
          if (type === "item") write(live.items, items, key, value);
          else write(live.limits, limits, key, value);
        }
        live.graph.flush();
        const fresh = sampleGraph();
        for (const [key, value] of items) fresh.items.set(key, value);
        for (const [key, value] of limits) fresh.limits.set(key, value);
        fresh.graph.flush();
        assert.deepEqual(live.state(), fresh.state());
      }
    }),
    { numRuns: 300 },
  );
});

function write<V>(input: Input<V>, mirror: Map<string, V>, key: string, value: V | undefined): void {
  if (value === undefined) {
    input.delete(key);
    mirror.delete(key);
  } else {
    input.set(key, value);
    mirror.set(key, value);
  }
}

test("one change recomputes only what read it", () => {
  const graph = new Graph();
  const routes = graph.input<string>("routes");
  const services = graph.input<{ port: number; note: string }>("services");
  const calls: string[] = [];
  const ports = graph.derive("ports", services, (_key, service) => service.port);
  graph.derive("bound", routes, (key, service, read) => {
    calls.push(key);
    return read.get(ports, service);
  });
  for (let at = 0; at < 1000; at++) routes.set(`route-${at}`, `service-${at % 100}`);
  for (let at = 0; at < 100; at++) services.set(`service-${at}`, { port: 80, note: "" });
  graph.flush();
  assert.equal(calls.length, 1000, "one batch computes each route once");

  calls.length = 0;
  services.set("service-7", { port: 81, note: "" });
  graph.flush();
  assert.equal(calls.length, 10);

  calls.length = 0;
  services.set("service-7", { port: 81, note: "an equal output stops the wave" });
  graph.flush();
  assert.deepEqual(calls, []);

  routes.set("route-3", "service-4");
  graph.flush();
  assert.deepEqual(calls, ["route-3"]);
});

test("one more entry that names a member wakes no reader of its group; the first and the last do", () => {
  const graph = new Graph();
  const users = graph.input<string>("users");
  const services = graph.input<true>("services");
  const byService = users.groups((service) => [{ group: service, member: "gateway" }]);
  let calls = 0;
  const reach = graph.derive("reach", services, (key, _value, read) => {
    calls++;
    return [...read.members(byService, key), read.size(byService, key)];
  });
  const step = (change: () => void): number => {
    calls = 0;
    change();
    graph.flush();
    return calls;
  };
  services.set("s", true);
  assert.equal(
    step(() => users.set("first", "s")),
    1,
  );
  assert.equal(
    step(() => users.set("second", "s")),
    0,
  );
  assert.deepEqual(reach.get("s"), ["gateway", 1]);
  assert.equal(
    step(() => users.delete("first")),
    0,
  );
  assert.equal(
    step(() => users.delete("second")),
    1,
  );
  assert.deepEqual(reach.get("s"), [0]);
});

test("a read that is no longer made no longer wakes anybody", () => {
  const graph = new Graph();
  const switches = graph.input<string>("switches");
  const values = graph.input<number>("values");
  let calls = 0;
  graph.derive("chosen", switches, (_key, target, read) => {
    calls++;
    return read.get(values, target);
  });
  switches.set("s", "old");
  graph.flush();
  switches.set("s", "new");
  graph.flush();
  calls = 0;
  values.set("old", 1);
  graph.flush();
  assert.equal(calls, 0);
  values.set("new", 2);
  graph.flush();
  assert.equal(calls, 1);
});

test("listeners hear one net change per key and flush, and nothing of a value that came back", () => {
  const graph = new Graph();
  const values = graph.input<number>("values");
  const doubled = graph.derive("doubled", values, (_key, value) => value * 2);
  const heard: (readonly Change<number>[])[] = [];
  doubled.onChange((changes) => heard.push(changes));
  values.set("a", 1);
  values.set("a", 2);
  graph.flush();
  values.set("a", 3);
  values.set("a", 2);
  graph.flush();
  values.delete("a");
  graph.flush();
  assert.deepEqual(heard, [[{ key: "a", before: undefined, after: 4 }], [{ key: "a", before: 4, after: undefined }]]);
});

test("a derivation that reads what is computed after it is refused by name", () => {
  const graph = new Graph();
  const input = graph.input<number>("input");
  const early = graph.derive("early", input, (key, _value, read): number | undefined => read.get(late.collection, key));
  const late = { collection: graph.derive("late", early, (_key, value) => value) };
  input.set("a", 1);
  assert.throws(() => graph.flush(), /early reads late/);
});

test("a derivation that threw runs again in the next flush", () => {
  const graph = new Graph();
  const input = graph.input<number>("input");
  let broken = true;
  const output = graph.derive("output", input, (_key, value) => {
    if (broken) throw new Error("broken");
    return value;
  });
  input.set("a", 1);
  assert.throws(() => graph.flush(), /broken/);
  broken = false;
  graph.flush();
  assert.equal(output.get("a"), 1);
});
