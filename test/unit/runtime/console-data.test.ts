/** What the page of the admin server is told: configuration in words, refusals, endpoints by trouble, usage by label. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AppliedUpdates } from "../../../src/runtime/applied-updates.ts";
import { buildConsoleData, type ConsoleSources } from "../../../src/runtime/console-data.ts";
import type { EndpointDump } from "../../../src/proxy/balancing/endpoint-dump.ts";
import type { Reading } from "../../../src/telemetry/registry.ts";
import { BIND, bind, LISTENER, listener, policy, route, to } from "../../support/gateway/data-plane.ts";

const NOTHING = { known: undefined, backends: undefined, usage: undefined };

function endpoint(backend: string, more: Partial<EndpointDump> = {}): EndpointDump {
  const counts = { pendingRequests: 0, totalRequests: 0, consecutiveFailures: 0, timesEjected: 0 };
  return { backend, endpoint: "10.0.0.1:80", health: 1, requestLatency: 0, ...counts, evictedUntil: null, ...more };
}

function sourcesOf(change: {
  readonly resources?: ConsoleSources["state"]["resources"];
  readonly endpoints?: readonly EndpointDump[];
  readonly metrics?: Readonly<Record<string, readonly Reading[]>>;
  readonly applied?: AppliedUpdates;
}): ConsoleSources {
  const { resources = [], endpoints = [], metrics = {}, applied = new AppliedUpdates() } = change;
  const listeners = [{ bind: BIND, gateway: "default/gw", port: 80, boundPort: 8080 }];
  return {
    state: { resources, listeners, endpoints, workloadIdentity: null, credentials: [] },
    applied,
    pending: new Set(),
    source: "files",
    version: "1.2.3",
    read: (metric) => metrics[metric] ?? [],
    now: new Date("2026-01-01T00:00:00Z"),
  };
}

test("binds, listeners and routes are told in the words of manifests, once for each revision", () => {
  const matches = [
    { path: { case: "exact", value: "/pay" } as const, method: "POST" },
    {
      path: { case: "regex", value: "/[a-z]+" } as const,
      headers: [{ name: "x-user", value: { case: "exact", value: "bob" } as const }],
      query: [{ name: "page", value: { case: "regex", value: "\\d" } as const }],
    },
  ];
  const broken = { backends: [{ weight: 1, backend: "", invalidReason: "Service default/gone not found" }] };
  const resources = [
    bind(),
    listener("*.example"),
    route("shop", [{ name: "pay", matches, ...broken }, to("shop")], ["shop.example"]),
    policy("p", {}),
  ];
  const sources = sourcesOf({ resources });
  const { revision, content } = buildConsoleData(sources, NOTHING).configuration;
  assert.deepEqual(content?.binds, [
    {
      key: BIND,
      port: 80,
      openPort: 8080,
      gateway: "default/gw",
      protocol: "HTTP",
      isInternal: false,
      listeners: [
        { key: LISTENER, name: "http", hostname: "*.example", protocol: "HTTP", listenerSet: null, routes: 1 },
      ],
    },
  ]);
  assert.deepEqual(content?.routes, [
    {
      key: "httproute/default/shop",
      kind: "HTTPRoute",
      name: "default/shop",
      hostnames: ["shop.example"],
      listeners: [LISTENER],
      rules: [
        {
          rule: "pay",
          matches: ["POST /pay", "~/[a-z]+ x-user: bob ?page=~\\d"],
          backends: ["no backend"],
          problems: ["Service default/gone not found"],
        },
        { rule: "1", matches: ["/*"], backends: ["GwBackend default/shop"], problems: [] },
      ],
    },
  ]);
  const again = buildConsoleData(sources, { ...NOTHING, known: revision }).configuration;
  assert.deepEqual(again, { revision, appliedAt: null });
  const withoutPolicy = sourcesOf({ resources: resources.slice(0, 3) });
  assert.equal(
    buildConsoleData(withoutPolicy, NOTHING).configuration.revision,
    revision,
    "policies are not part of it",
  );
  const fewer = sourcesOf({ resources: resources.slice(0, 2) });
  assert.notEqual(buildConsoleData(fewer, NOTHING).configuration.revision, revision);
});

test("refusals are told newest first until the object is accepted, and are bounded", () => {
  let second = 0;
  const applied = new AppliedUpdates(() => new Date(Date.UTC(2026, 0, 1, 0, 0, second)));
  const refuse = (key: string): void => {
    second++;
    applied.record({ set: [], removed: [] }, { refused: [{ type: "Policy", key, reason: "bad" }] });
  };
  assert.equal(applied.appliedAt, null);
  refuse("a");
  refuse("b");
  refuse("a");
  assert.deepEqual(
    buildConsoleData(sourcesOf({ applied }), NOTHING).refused.map(({ key, at }) => [key, at]),
    [
      ["a", "2026-01-01T00:00:03.000Z"],
      ["b", "2026-01-01T00:00:02.000Z"],
    ],
  );
  applied.record({ set: [], removed: [{ type: "Policy", key: "a" }] }, { refused: [] });
  assert.deepEqual(
    applied.refusals().map(({ key }) => key),
    ["b"],
  );
  for (let at = 0; at < 300; at++) refuse(`p${at}`);
  assert.equal(applied.refusals().length, 100);
  assert.equal(applied.refusals()[0]?.key, "p299");
});

test("endpoints in trouble come first, and the list is cut", () => {
  const endpoints = [
    endpoint("service/default/idle:80"),
    endpoint("service/default/busy:80", { totalRequests: 9 }),
    endpoint("backend/default/ill", { health: 0.5 }),
    endpoint("backend/default/out", { evictedUntil: "2026-01-01T00:00:30Z", timesEjected: 1 }),
  ];
  const listed = buildConsoleData(sourcesOf({ endpoints }), NOTHING).backends;
  assert.deepEqual(
    listed.endpoints.map(({ backend }) => backend),
    ["GwBackend default/out", "GwBackend default/ill", "Service default/busy:80", "Service default/idle:80"],
  );
  const filtered = buildConsoleData(sourcesOf({ endpoints }), { ...NOTHING, backends: "SERVICE" }).backends;
  assert.deepEqual([filtered.found, filtered.total, filtered.ejected], [2, 4, 1]);
  const many = Array.from({ length: 2000 }, (_, at) => endpoint(`service/default/s${at}:80`));
  const cut = buildConsoleData(sourcesOf({ endpoints: many }), NOTHING).backends;
  assert.deepEqual([cut.endpoints.length, cut.found], [500, 2000]);
});

test("usage is added up by the label that is asked for, the dearest first", () => {
  const reading = (value: number, labels: Record<string, string>, count = 0): Reading => ({ labels, value, count });
  const ofModel = (model: string, team: string): Record<string, string> => ({ gen_ai_request_model: model, team });
  const metrics = {
    gen_ai_server_request_duration: [
      reading(0.5, ofModel("small", "red"), 2),
      reading(0.5, ofModel("large", "red"), 1),
      reading(0.5, ofModel("small", "blue"), 1),
    ],
    gen_ai_client_token_usage: [
      reading(30, { ...ofModel("small", "red"), gen_ai_token_type: "input" }),
      reading(10, { ...ofModel("small", "blue"), gen_ai_token_type: "input" }),
      reading(7, { ...ofModel("large", "red"), gen_ai_token_type: "output" }),
      reading(5, { ...ofModel("large", "red"), gen_ai_token_type: "input_cache_read" }),
      reading(1, { ...ofModel("large", "red"), gen_ai_token_type: "something new" }),
    ],
    gen_ai_client_cost_usd_total: [reading(0.25, ofModel("large", "red"))],
    cost_catalog_lookups_total: [
      reading(1, { ...ofModel("large", "red"), status: "Exact" }),
      reading(3, { ...ofModel("small", "red"), status: "Missing" }),
    ],
  };
  const usageBy = (usage: string | undefined): unknown =>
    buildConsoleData(sourcesOf({ metrics }), { ...NOTHING, usage }).usage.rows.map(
      ({ value, requests, inputTokens, outputTokens, cacheReadTokens, costUsd, unpriced }) =>
        [value, requests, inputTokens, outputTokens, cacheReadTokens, costUsd, unpriced].join(" "),
    );
  assert.deepEqual(usageBy(undefined), ["large 1 0 7 5 0.25 0", "small 3 40 0 0  3"]);
  assert.deepEqual(usageBy("team"), ["red 3 30 7 5 0.25 3", "blue 1 10 0 0  0"]);
  assert.deepEqual(usageBy("le"), usageBy(undefined));
  assert.equal(buildConsoleData(sourcesOf({ metrics }), NOTHING).usage.labels.at(-1), "team");
});

test("requests and failures are added up over all series", () => {
  const requests = [
    { labels: { status: "200" }, value: 5, count: 0 },
    { labels: { status: "503" }, value: 2, count: 0 },
  ];
  const { traffic } = buildConsoleData(sourcesOf({ metrics: { requests_total: requests } }), NOTHING);
  assert.deepEqual(traffic, { requests: 7, failed: 2 });
});
