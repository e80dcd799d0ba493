/** The pure parts of the console: places, filter, list window, rates, health, formats. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ConfigurationContent, ConsoleData, RouteData } from "../../../src/console/data.ts";
import { lossText, settingsOfCalls } from "../../../src/console/model/explanation.ts";
import { filterRoutes, indexRoutes } from "../../../src/console/model/filter.ts";
import {
  formatAge,
  formatBytes,
  formatMicroseconds,
  formatPercent,
  formatRate,
  formatUsd,
} from "../../../src/console/model/format.ts";
import { assessHealth } from "../../../src/console/model/health.ts";
import { scrollToRow, windowOf } from "../../../src/console/model/list-window.ts";
import { parsePlace, printPlace } from "../../../src/console/model/place.ts";
import { addSample, linePoints, ratesOf } from "../../../src/console/model/rates.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

function routeData(name: string, more: Partial<RouteData> = {}): RouteData {
  const rule = { rule: "0", matches: ["GET /shop/*"], backends: ["Service default/shop:80"], problems: [] };
  const key = `httproute/${name}`;
  return { key, kind: "HTTPRoute", name, hostnames: [], listeners: ["default/gw.http"], rules: [rule], ...more };
}

test("a place survives its way through the fragment of the URL", () => {
  const names = fc.string({ unit: "grapheme", minLength: 1 }).filter((name) => !name.includes("/"));
  assertProperty(
    fc.property(names, names, (route, listener) => {
      const place = { view: "routes", route: `httproute/${route}`, listener } as const;
      assert.deepEqual(parsePlace(printPlace(place)), place);
    }),
  );
  assert.deepEqual(parsePlace("#/nothing/else"), { view: "overview", route: "", listener: "" });
  assert.deepEqual(parsePlace("#/routes/%zz"), { view: "routes", route: "%zz", listener: "" });
  assert.equal(parsePlace("").view, "overview");
});

test("routes are found by all words, in any order and case, and by their listener", () => {
  const index = indexRoutes([
    routeData("default/shop", { hostnames: ["shop.example"] }),
    routeData("team/pay", { listeners: ["default/gw.tls"] }),
  ]);
  const names = (filter: string, listener = ""): string[] =>
    filterRoutes(index, filter, listener).map(({ name }) => name);
  assert.deepEqual(names(""), ["default/shop", "team/pay"]);
  assert.deepEqual(names("  EXAMPLE  shop"), ["default/shop"]);
  assert.deepEqual(names("service /shop"), ["default/shop", "team/pay"]);
  assert.deepEqual(names("shop.example pay"), []);
  assert.deepEqual(names("", "default/gw.tls"), ["team/pay"]);
});

test("of a list of any length the rows in sight and a few more are drawn", () => {
  const view = { scrollTop: 56_000, height: 600, rowHeight: 56 };
  const { first, end } = windowOf(5000, view);
  assert.ok(first <= 1000 && end >= 1011 && end - first < 30, `${first} to ${end}`);
  assert.deepEqual(windowOf(0, view), { first: 0, end: 0 });
  assert.deepEqual(windowOf(3, { ...view, scrollTop: 0 }), { first: 0, end: 3 });
  assertProperty(
    fc.property(fc.nat(6000), fc.nat(400_000), fc.integer({ min: 1, max: 2000 }), (count, scrollTop, height) => {
      const drawn = windowOf(count, { scrollTop, height, rowHeight: 56 });
      assert.ok(0 <= drawn.first && drawn.first <= drawn.end && drawn.end <= Math.max(count, drawn.first));
      assert.ok(drawn.end - drawn.first <= height / 56 + 15);
    }),
  );
});

test("moving to a row scrolls no further than needed", () => {
  const view = { scrollTop: 560, height: 560, rowHeight: 56 };
  assert.equal(scrollToRow(12, view), 560);
  assert.equal(scrollToRow(3, view), 168);
  assert.equal(scrollToRow(20, view), 616);
});

test("rates are differences of counts, and begin again with a new process", () => {
  const first = addSample([], { requests: 100, failed: 0, atMs: 1000 });
  const second = addSample(first, { requests: 160, failed: 15, atMs: 4000 });
  assert.deepEqual(ratesOf(second), [{ requestsPerSecond: 20, failedShare: 0.25 }]);
  assert.deepEqual(ratesOf(addSample(second, { requests: 160, failed: 15, atMs: 7000 })).at(-1), {
    requestsPerSecond: 0,
    failedShare: 0,
  });
  assert.equal(addSample(second, { requests: 3, failed: 0, atMs: 9000 }).length, 1);
  let samples = second;
  for (let at = 2; at < 200; at++) samples = addSample(samples, { requests: 1000, failed: 15, atMs: at * 3000 });
  assert.equal(samples.length, 61);
  assert.equal(linePoints([0, 5, 10], 100, 20), "0.0,20.0 50.0,10.0 100.0,0.0");
});

test("numbers are printed in short forms", () => {
  assert.deepEqual(
    [formatMicroseconds(850), formatMicroseconds(12_400), formatMicroseconds(3_100_000)],
    ["850 µs", "12.4 ms", "3.1 s"],
  );
  assert.deepEqual([formatAge(0), formatAge(12_000), formatAge(97_200_000)], ["0 s", "12 s", "1 d 3 h"]);
  assert.deepEqual([formatBytes(200 * 2 ** 20), formatBytes(1.5 * 2 ** 30)], ["200 MiB", "1.5 GiB"]);
  assert.deepEqual([formatUsd(0), formatUsd(12.5), formatUsd(0.000_25)], ["$0.00", "$12.50", "$0.000250"]);
  assert.deepEqual([formatRate(3.44), formatRate(1234.5), formatPercent(0.125)], ["3.4", "1,235", "12.5 %"]);
});

test("a loser is shown with its winner and the reason", () => {
  const to = { level: "route", origin: "GwPolicy default/old spec.traffic.cors" };
  const loser = { level: "gateway", origin: "GwPolicy default/new spec.traffic.cors", to };
  assert.deepEqual(
    [
      lossText({ ...loser, reason: "older" }),
      lossText({ ...loser, reason: "moreSpecific" }),
      lossText({ ...loser, to: { level: "filters", origin: "httproute/default/r" }, reason: "moreSpecific" }),
      lossText({ ...loser, reason: "override" }),
      lossText({ ...loser, reason: "new reason" }),
    ],
    [
      "lost to GwPolicy default/old spec.traffic.cors, which is older",
      "lost to GwPolicy default/old spec.traffic.cors, which is on the route and so more specific",
      "lost to the rule's own field, which is more specific",
      "lost to GwPolicy default/old spec.traffic.cors, which overrides more specific ones",
      "lost to GwPolicy default/old spec.traffic.cors (new reason)",
    ],
  );
});

const WELL: ConsoleData = {
  process: {
    version: "1",
    node: "24",
    startedAt: "2026-01-01T00:00:00Z",
    now: "2026-01-01T00:01:00Z",
    pending: [],
    source: "controller",
    following: true,
    threads: [],
    threadRestarts: 0,
    residentBytes: 1,
  },
  configuration: { revision: "a", appliedAt: null },
  refused: [],
  traffic: { requests: 0, failed: 0 },
  backends: { endpoints: [], found: 0, total: 0, ejected: 0 },
  usage: { label: "", labels: [], rows: [], total: 0 },
};
const EMPTY: ConfigurationContent = { binds: [], routes: [] };

test("a data plane is well when nothing is wrong, and each fault is named with the next step", () => {
  assert.deepEqual(assessHealth(WELL, EMPTY), { state: "well", findings: [] });
  const stateOf = (data: ConsoleData, content = EMPTY): readonly [string, string] => {
    const { state, findings } = assessHealth(data, content);
    for (const { next } of findings) assert.ok(next.length > 0);
    return [state, findings.map(({ text }) => text).join(" ")];
  };
  const processOf = (change: Partial<ConsoleData["process"]>): ConsoleData => ({
    ...WELL,
    process: { ...WELL.process, ...change },
  });
  const refused = [{ type: "Policy", key: "gwpolicy/default/p", reason: "no such unit", at: "2026-01-01T00:00:00Z" }];
  const bind = {
    key: "80/default/gw",
    gateway: "default/gw",
    port: 80,
    openPort: null,
    protocol: "HTTP",
    listeners: [],
  };
  const broken = routeData("default/shop", {
    rules: [{ rule: "0", matches: [], backends: [], problems: ["Service default/shop not found"] }],
  });
  assert.deepEqual(
    [
      stateOf(processOf({ pending: ["configuration"], following: false })),
      stateOf(processOf({ pending: ["shutdown"] })),
      stateOf(processOf({ following: false })),
      stateOf({ ...WELL, refused }),
      stateOf({ ...WELL, backends: { ...WELL.backends, ejected: 2 } }),
      stateOf(WELL, { binds: [{ ...bind, isInternal: false }], routes: [] }),
      stateOf(WELL, { binds: [{ ...bind, isInternal: true }], routes: [] }),
      stateOf(WELL, { binds: [], routes: [broken] }),
    ],
    [
      ["starting", "No configuration has arrived yet."],
      ["degraded", "The process is shutting down."],
      ["degraded", "The controller is not connected; the last configuration serves."],
      ["degraded", "Policy gwpolicy/default/p was refused: no such unit"],
      ["degraded", "2 endpoints are out of rotation."],
      ["degraded", "Port 80 of Gateway default/gw is not open."],
      ["well", ""],
      ["degraded", "HTTPRoute default/shop answers some requests with an error: Service default/shop not found"],
    ],
  );
  const many = Array.from({ length: 5000 }, () => broken);
  assert.equal(assessHealth(WELL, { binds: [], routes: many }).findings.length, 6);
});

test("the calls of a rule are listed with their providers, targets and copies, as far as something is set", () => {
  const policies = [{ policy: "auth", from: [], lost: [] }];
  const sections = [{ section: "fast", policies }];
  const calls = settingsOfCalls({
    backends: [
      { backend: "backend/default/ai", policies: [], sections },
      { backend: "", refuses: "it does not exist", policies: [] },
    ],
    mirrors: [
      { backend: "service/default/b:80", share: 1 / 3, policies },
      { backend: "service/default/b:80", share: 1, of: "backend/default/ai", policies: [] },
    ],
  });
  assert.deepEqual(
    calls.map(({ title, refuses = "" }) => [title, refuses]),
    [
      ["Calls to fast of backend/default/ai", ""],
      ["Calls to no backend", "it does not exist"],
      ["Copies to service/default/b:80, 33.33 %", ""],
    ],
  );
});
