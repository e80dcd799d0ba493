import assert from "node:assert/strict";
import { test } from "node:test";
import type { MetricGroup } from "../../../src/telemetry/metric-table.ts";
import { Registry } from "../../../src/telemetry/registry.ts";
import { parseExposition } from "../../support/gateway/exposition.ts";

const CALLS: MetricGroup<"calls_total" | "bytes_total", "call_seconds"> = {
  labels: ["place", "model"],
  clientChosen: ["model"],
  counters: { calls_total: "Calls.", bytes_total: "Bytes." },
  histograms: { call_seconds: { help: "Seconds of calls.", bounds: [0.1, 1, 10] } },
};
const PARTS = { type: "gauge", labels: ["part"], help: "Parts.", ofThreads: true } as const;

test("counters and histograms of one set of labels are printed in both formats", () => {
  const registry = new Registry("test_");
  const { row, counters, histograms } = registry.group(CALLS);
  const counted = row(["a", "m"]);
  counters.calls_total.add(counted, 2);
  for (const seconds of [0.05, 1, 1.5, 99]) histograms.call_seconds.observe(counted, seconds);
  assert.equal(
    registry.print("prometheus"),
    `# HELP test_calls_total Calls.
# TYPE test_calls_total counter
test_calls_total{place="a",model="m"} 2
# HELP test_bytes_total Bytes.
# TYPE test_bytes_total counter
# HELP test_call_seconds Seconds of calls.
# TYPE test_call_seconds histogram
test_call_seconds_bucket{place="a",model="m",le="0.1"} 1
test_call_seconds_bucket{place="a",model="m",le="1"} 2
test_call_seconds_bucket{place="a",model="m",le="10"} 3
test_call_seconds_bucket{place="a",model="m",le="+Inf"} 4
test_call_seconds_sum{place="a",model="m"} 101.55
test_call_seconds_count{place="a",model="m"} 4
`,
  );
  const open = registry.print("openmetrics");
  assert.match(open, /^# TYPE test_calls counter\ntest_calls_total\{place="a",model="m"\} 2$/m);
  assert.match(open, /le="1\.0"\} 2\n/);
  assert.ok(open.endsWith("# EOF\n"));
  parseExposition(open, "openmetrics");
});

test("values are quoted, and a series with more labels stands beside one with fewer", () => {
  const registry = new Registry("test_");
  const { row, counters } = registry.group(CALLS);
  counters.calls_total.add(row(["a", 'say "hi"\\\n{}=,']), 1);
  counters.calls_total.add(row(["a", "m", "tenant", "t1"]), 1);
  counters.calls_total.add(row(["a", "m"]), 1);
  for (const format of ["prometheus", "openmetrics"] as const) {
    const families = parseExposition(registry.print(format), format);
    const { samples = [] } = families.get(format === "openmetrics" ? "test_calls" : "test_calls_total") ?? {};
    assert.deepEqual(
      samples.map(({ labels }) => labels),
      [
        { place: "a", model: 'say "hi"\\\n{}=,' },
        { place: "a", model: "m", tenant: "t1" },
        { place: "a", model: "m" },
      ],
    );
  }
});

test("of what clients choose a thousand values are told apart, and each is cut", () => {
  const registry = new Registry("test_");
  const { row, counters } = registry.group(CALLS);
  const long = `${"x".repeat(127)}\u{1f600}`;
  counters.calls_total.add(row(["a", long]), 1);
  counters.calls_total.add(row(["a", `${"x".repeat(127)}\u{1f601}`]), 1);
  for (let at = 1; at < 1100; at++) counters.calls_total.add(row(["a", `m${at}`]), 1);
  for (let at = 0; at < 1100; at++) counters.calls_total.add(row([`place ${at}`, "m1"]), 1);
  const { samples = [] } = parseExposition(registry.print("prometheus"), "prometheus").get("test_calls_total") ?? {};
  const models = new Map(
    samples.filter(({ labels }) => labels["place"] === "a").map((s) => [s.labels["model"], s.value]),
  );
  assert.equal(models.size, 1001);
  assert.equal(models.get("x".repeat(127)), 2);
  assert.equal(models.get("other"), 100);
  assert.equal(new Set(samples.map(({ labels }) => labels["place"])).size, 1101, "what is configured is never bounded");
});

test("the bound of a further label is its own, and combinations are bounded too", () => {
  const registry = new Registry("test_");
  const { row, counters } = registry.group(CALLS);
  const add = (tenant: number, team: number): void =>
    counters.calls_total.add(row(["a", "m", "tenant", `t${tenant}`, "team", `e${team}`]), 1);
  for (let tenant = 0; tenant < 150; tenant++) for (let team = 0; team < 100; team++) add(tenant, team);
  add(0, 0);
  add(149, 99);
  const { samples = [] } = parseExposition(registry.print("prometheus"), "prometheus").get("test_calls_total") ?? {};
  assert.equal(samples.length, 10_001);
  const valueOf = (tenant: string, team: string): number | undefined =>
    samples.find(({ labels }) => labels["tenant"] === tenant && labels["team"] === team)?.value;
  assert.equal(valueOf("t0", "e0"), 2);
  assert.equal(valueOf("other", "other"), 5_001);
});

test("what threads have counted is added up, and bounded once more", () => {
  const [main, one, two] = [new Registry("test_"), new Registry("test_"), new Registry("test_")];
  main.group(CALLS);
  for (const [thread, registry] of [one, two].entries()) {
    const { row, counters, histograms } = registry.group(CALLS);
    for (let at = 0; at < 600; at++) counters.calls_total.add(row(["a", `m${thread * 300 + at * 2}`]), 1);
    counters.bytes_total.add(row(["b", "m"]), 5);
    histograms.call_seconds.observe(row(["b", "m"]), 0.5);
  }
  // As between threads.
  main.add(structuredClone(one.take()));
  main.add(structuredClone(two.take()));
  main.add(one.take());
  const families = parseExposition(main.print("prometheus"), "prometheus");
  assert.deepEqual(families.get("test_bytes_total")?.samples, [
    { name: "test_bytes_total", labels: { place: "b", model: "m" }, value: 10 },
  ]);
  const seconds = families.get("test_call_seconds")?.samples.find(({ name }) => name === "test_call_seconds_sum");
  assert.equal(seconds?.value, 1);
  const { samples = [] } = families.get("test_calls_total") ?? {};
  assert.equal(
    samples.reduce((sum, { value }) => sum + value, 0),
    1200,
  );
});

test("what is known elsewhere is read when asked for, and parts that threads know are added up", () => {
  const registry = new Registry("test_");
  let parts = 1;
  registry.observe("parts", PARTS, () => []);
  registry.observe("parts", PARTS, () => [{ values: ["x"], value: parts }]);
  registry.replaceObservations("0", [["parts", [{ values: ["x"], value: 10 }]]]);
  registry.replaceObservations("1", [["parts", [{ values: ["y"], value: 100 }]]]);
  parts = 2;
  assert.match(registry.print("prometheus"), /\ntest_parts\{part="x"\} 12\ntest_parts\{part="y"\} 100\n$/);
  assert.deepEqual(registry.observations(), [["parts", [{ values: ["x"], value: 2 }]]]);
  registry.replaceObservations("1", undefined);
  assert.doesNotMatch(registry.print("prometheus"), /part="y"/);
});

test("a reader inside of the process gets each series by its labels", () => {
  const registry = new Registry("test_");
  const { row, counters, histograms } = registry.group(CALLS);
  counters.calls_total.add(row(["a", "m", "tenant", "t1"]), 2);
  histograms.call_seconds.observe(row(["a", "m"]), 1.5);
  histograms.call_seconds.observe(row(["a", "m"]), 99);
  registry.observe("parts", PARTS, () => [{ values: ["x"], value: 1 }]);
  registry.replaceObservations("1", [["parts", [{ values: ["y"], value: 4 }]]]);
  assert.deepEqual(registry.read("calls_total"), [
    { labels: { place: "a", model: "m", tenant: "t1" }, value: 2, count: 0 },
  ]);
  assert.deepEqual(registry.read("call_seconds"), [{ labels: { place: "a", model: "m" }, value: 100.5, count: 2 }]);
  assert.deepEqual(registry.read("parts"), [
    { labels: { part: "x" }, value: 1, count: 0 },
    { labels: { part: "y" }, value: 4, count: 0 },
  ]);
  assert.deepEqual(registry.read("nothing"), []);
});
