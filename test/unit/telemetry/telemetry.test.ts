import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccessLog } from "../../../src/telemetry/access-log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import type { RequestRecord } from "../../../src/telemetry/request-record.ts";

const RECORD: RequestRecord = {
  startedAt: new Date("2026-01-02T03:04:05.678Z"),
  durationMs: 12.3456,
  method: "GET",
  host: "h.test",
  path: "/a",
  version: "HTTP/1.1",
  status: 200,
  reason: "Upstream",
  detail: "",
  gateway: "ns/gw",
  listener: "http",
  route: "ns/r",
  rule: "",
  backend: "ns/b",
  clientAddress: "127.0.0.1",
  requestBytes: 3,
  responseBytes: 5,
  clientGone: false,
  llm: undefined,
};

test("lines of one turn of the event loop are written together, one JSON object a line", async () => {
  const writes: string[] = [];
  const log = createAccessLog((text) => void writes.push(text));
  log(RECORD);
  log({ ...RECORD, path: "/b" });
  assert.deepEqual(writes, []);
  await new Promise(setImmediate);
  assert.equal(writes.length, 1);
  const lines = (writes[0] ?? "").trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(lines.map((line) => line["http.path"]), ["/a", "/b"]);
  assert.equal(lines[0]?.["duration_ms"], 12.346);
  assert.equal("error" in (lines[0] ?? {}), false);
});

test("requests are counted and timed by place, and unknown methods share a label", () => {
  const metrics = createMetrics();
  metrics.request(RECORD);
  metrics.request({ ...RECORD, method: "BREW", status: 404 });
  const text = metrics.render();
  assert.match(text, /gwproxy_requests_total\{gateway="ns\/gw",listener="http",route="ns\/r",backend="ns\/b",method="GET",status="200",reason="Upstream"\} 1\n/);
  assert.match(text, /method="other",status="404"/);
  assert.match(text, /gwproxy_request_duration_seconds_bucket\{[^}]*le="0\.01"\} 0\n/);
  assert.match(text, /gwproxy_request_duration_seconds_bucket\{[^}]*le="0\.025"\} 2\n/);
  assert.match(text, /gwproxy_request_duration_seconds_count\{[^}]*\} 2\n/);
  assert.match(text, /gwproxy_bytes_total\{[^}]*direction="response"\} 10\n/);
});

test("tokens are counted by provider and type, and label values are escaped", () => {
  const metrics = createMetrics();
  metrics.request({
    ...RECORD,
    route: 'a"b\\c\nd',
    llm: { provider: "openai", requestModel: "m", responseModel: "m", streaming: false, inputTokens: 7, outputTokens: 2, totalTokens: 9 },
  });
  const text = metrics.render();
  assert.match(text, /gwproxy_llm_tokens_total\{[^}]*provider="openai",type="input"\} 7\n/);
  assert.ok(text.includes('route="a\\"b\\\\c\\nd"'));
});
