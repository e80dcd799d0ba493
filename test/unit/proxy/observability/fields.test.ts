import assert from "node:assert/strict";
import { test } from "node:test";
import { Double } from "../../../../src/cel/values.ts";
import { EVERYTHING } from "../../../../src/proxy/observability/access-log.ts";
import { LlmInfo } from "../../../../src/proxy/observability/stream-info/llm-info.ts";
import type { HttpInfo, StreamInfo } from "../../../../src/proxy/observability/stream-info/stream-info.ts";
import { FIELDS, spanColumns } from "../../../../src/proxy/observability/fields.ts";
import { AttributeList } from "../../../../src/telemetry/attributes.ts";

const CONNECTION: StreamInfo = {
  scope: { root: () => undefined },
  listener: { bind: "80/default/gw", gateway: "gw", namespace: "default", name: "tcp" },
  route: { namespace: "default", name: "db", kind: "TCPRoute", rule: "0" },
  endpoint: "2001:db8::1:5432",
  client: { address: "10.1.2.3", port: 4444 },
  connectionId: 7n,
  spiffeId: "spiffe://a.test/ns/x/sa/y",
  serverName: "db.test",
  protocol: "tcp",
  error: undefined,
  reason: undefined,
  durationMs: 12.34567,
  http: undefined,
};

test("a name stands once in each preset, and once in a span", () => {
  const legacy = FIELDS.flatMap((field) => field.legacy.map(({ name }) => name));
  const otel = FIELDS.flatMap((field) => field.otel.map(({ name }) => name));
  const span = spanColumns(new Set()).map(({ name }) => name);
  for (const names of [legacy, otel, span]) assert.deepEqual(names, [...new Set(names)]);
});

test("a span carries both names of what has two, and neither its error nor what is for debugging", () => {
  const names = spanColumns(new Set()).map(({ name }) => name);
  for (const name of ["http.method", "http.request.method", "duration", "gwp.duration_ms", "gen_ai.request.model"])
    assert.ok(names.includes(name), name);
  for (const name of ["error", "error.message", "gwp.connection.id"]) assert.ok(!names.includes(name), name);
});

test("a value that is removed from a span under one name does not stay under the other", () => {
  const left = (...removed: string[]): string[] => spanColumns(new Set(removed)).map(({ name }) => name);
  for (const removed of ["src.addr", "client.address"])
    for (const name of ["src.addr", "client.address"]) assert.ok(!left(removed).includes(name), `${removed}: ${name}`);
  assert.ok(!left("src.addr").includes("client.port"));
  assert.ok(left("url.query").includes("http.path"), "it has no query");
  assert.deepEqual(left("unknown"), left());
});

test("a span has each part of the cost, a line only the sum, as decimal texts without exponents", () => {
  const llm = LlmInfo.of({ cost: { total: 0.0000025, cacheRead: 1e-12, output: new Double(3) } });
  // Columns about LLMs read nothing else of the request.
  const info: StreamInfo = { ...CONNECTION, http: { llm } as HttpInfo };
  const costs = spanColumns(new Set()).filter(({ name }) => name.startsWith("gwp.ai.usage.cost."));
  assert.deepEqual(Object.fromEntries(costs.map((column) => [column.name.slice(18), column.read(info)])), {
    total: "0.0000025",
    input: undefined,
    output: "3",
    cache_read: "0.000000000001",
    cache_write: undefined,
    reasoning: undefined,
    input_audio: undefined,
    output_audio: undefined,
  });
  const names = FIELDS.flatMap(({ legacy }) => legacy.map(({ name }) => name));
  assert.deepEqual(
    names.filter((name) => name.startsWith("gwp.ai.usage.cost.")),
    ["gwp.ai.usage.cost.total"],
  );
});

test("what has no value is left out, and what is for debugging too unless that is wanted", () => {
  const plain = new AttributeList();
  EVERYTHING.addTo(plain, CONNECTION, false);
  const fields = [
    ["gateway", "default/gw"],
    ["listener", "tcp"],
    ["route_rule", "0"],
    ["route", "default/db"],
    ["endpoint", "2001:db8::1:5432"],
    ["src.addr", "10.1.2.3:4444"],
    ["src.identity", "spiffe://a.test/ns/x/sa/y"],
    ["tls.sni", "db.test"],
    ["protocol", "tcp"],
    ["duration", "12ms"],
  ];
  assert.deepEqual(plain.attributes, fields);
  const debug = new AttributeList();
  EVERYTHING.addTo(debug, CONNECTION, true);
  assert.deepEqual(debug.attributes, [["connection.id", 7n], ...fields]);
});

test("an address and its port are two fields of OpenTelemetry, and the path of a socket is one", () => {
  const read = (endpoint: string): unknown[] =>
    FIELDS.flatMap(({ otel }) => otel)
      .filter(({ name }) => name.startsWith("server."))
      .map((column) => column.read({ ...CONNECTION, endpoint }));
  assert.deepEqual(read("2001:db8::1:5432"), ["2001:db8::1", 5432n]);
  assert.deepEqual(read("10.0.0.1:80"), ["10.0.0.1", 80n]);
  assert.deepEqual(read("[::1]:80"), ["::1", 80n]);
  assert.deepEqual(read("/run/app.sock"), ["/run/app.sock", undefined]);
});
