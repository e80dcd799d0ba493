import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics, type LlmSample, type Metrics, type RequestSample } from "../../../src/telemetry/metrics.ts";
import { parseExposition, type Sample } from "../../support/gateway/exposition.ts";

const REQUEST: RequestSample = {
  backend: "default/b",
  protocol: "http",
  method: "GET",
  status: 200,
  reason: "Upstream",
  bind: "80/default/gw",
  gateway: "default/gw",
  listener: "http",
  route: "default/r",
  routeRule: "0",
  extra: [],
  durationSeconds: 0.003,
  requestProcessingSeconds: 0.0002,
  responseProcessingSeconds: 0.001,
  responseBytes: 7,
  retries: 0,
};
const PLACE = {
  bind: "80/default/gw",
  gateway: "default/gw",
  listener: "http",
  route: "default/r",
  route_rule: "0",
};
const LLM: LlmSample = {
  operation: "chat",
  system: "llma",
  requestModel: "m",
  responseModel: "m-1",
  tokens: { input: 5, output: 9, input_cache_read: undefined, input_cache_write: 0 },
};

function samples(metrics: Metrics, name: string): readonly Sample[] {
  const families = parseExposition(metrics.print("prometheus"), "prometheus");
  return [...families.values()].flatMap((family) =>
    family.samples.filter((sample) => sample.name === `gwproxy_${name}`),
  );
}

test("a request counts in every metric that is about it", () => {
  const metrics = createMetrics("1.2.3");
  metrics.request({ ...REQUEST, retries: 2 });
  metrics.request({ ...REQUEST, method: "BREW" });
  const labels = { backend: "default/b", protocol: "http", method: "GET", status: "200", reason: "Upstream", ...PLACE };
  assert.deepEqual(samples(metrics, "requests_total"), [
    { name: "gwproxy_requests_total", labels, value: 1 },
    { name: "gwproxy_requests_total", labels: { ...labels, method: "other" }, value: 1 },
  ]);
  assert.deepEqual(samples(metrics, "retries_total"), [{ name: "gwproxy_retries_total", labels, value: 2 }]);
  assert.deepEqual(
    samples(metrics, "response_bytes_total").map(({ value }) => value),
    [7, 7],
  );
  const [processing] = samples(metrics, "request_processing_seconds_sum");
  assert.deepEqual(processing?.labels, { backend: "default/b", protocol: "http", ...PLACE });
  assert.equal(processing?.value, 0.0004);
  assert.equal(samples(metrics, "response_processing_seconds_count")[0]?.value, 2);
  assert.deepEqual(samples(metrics, "build_info")[0]?.labels, { tag: "1.2.3" });
});

test("further labels are on everything about the request, its tokens too", () => {
  const metrics = createMetrics("test");
  metrics.request({ ...REQUEST, extra: ["tenant", "t1"], llm: LLM, retries: 1 });
  const all = ["requests_total", "request_processing_seconds_sum", "gen_ai_client_token_usage_sum"];
  for (const name of [...all, "gen_ai_server_request_duration_sum", "retries_total"]) {
    const found = samples(metrics, name);
    assert.notEqual(found.length, 0, name);
    for (const { labels } of found) assert.equal(labels["tenant"], "t1", name);
  }
  assert.deepEqual(
    samples(metrics, "gen_ai_client_token_usage_sum").map(({ labels, value }) => [labels["gen_ai_token_type"], value]),
    [
      ["input", 5],
      ["output", 9],
      ["input_cache_write", 0],
    ],
  );
});

test("a model's name that would break the text or the table does neither", () => {
  const metrics = createMetrics("test");
  metrics.request({ ...REQUEST, llm: { ...LLM, requestModel: 'a\u0000b"\ud800', responseModel: "" } });
  const [tokens] = samples(metrics, "gen_ai_server_request_duration_count");
  assert.equal(tokens?.labels["gen_ai_request_model"], 'a\ufffdb"\ufffd');
  assert.equal(tokens?.labels["gen_ai_response_model"], "unknown");
});

/** As between the threads of a data plane. */
function join(threads: readonly Metrics[]): Metrics {
  const main = createMetrics("test");
  for (const thread of threads) main.add(structuredClone(thread.take()));
  return main;
}

const modelsOf = (metrics: Metrics): Set<string | undefined> =>
  new Set(samples(metrics, "gen_ai_server_request_duration_count").map(({ labels }) => labels["gen_ai_request_model"]));

test("ten thousand invented models are one unknown one, in one thread and in two", () => {
  for (const count of [1, 2]) {
    const threads = Array.from({ length: count }, () => createMetrics("test"));
    for (let at = 0; at < 10_000; at++) {
      const llm = { ...LLM, requestModel: `invented-${at}`, responseModel: "unknown" };
      // Refused here, refused there, broken off, given up by the client, answered by a policy.
      const ends = [
        [429, "RateLimit"],
        [404, "Upstream"],
        [200, "UpstreamFailure"],
        [499, "ClientClosed"],
        [200, "DirectResponse"],
      ] as const;
      const [status, reason] = ends[at % ends.length] ?? [500, "Internal"];
      threads[at % count]?.request({ ...REQUEST, status, reason, llm });
    }
    const main = join(threads);
    assert.deepEqual(modelsOf(main), new Set(["unknown"]));
    assert.ok(main.print("openmetrics").length < 100_000);
  }
});

test("a model that an upstream has answered for keeps its name when it fails later", () => {
  const metrics = createMetrics("test");
  metrics.request({ ...REQUEST, status: 503, reason: "UpstreamFailure", llm: LLM });
  assert.deepEqual(modelsOf(metrics), new Set(["unknown"]));
  metrics.request({ ...REQUEST, llm: LLM });
  metrics.request({ ...REQUEST, status: 503, reason: "UpstreamFailure", llm: LLM });
  assert.deepEqual(
    samples(metrics, "gen_ai_server_request_duration_count").map(({ labels, value }) => [
      labels["gen_ai_request_model"],
      labels["status"],
      value,
    ]),
    [
      ["unknown", undefined, 1],
      ["m", undefined, 2],
    ],
  );
});

test("of models that were answered for a hundred are told apart, and those of the configuration always", () => {
  const threads = [createMetrics("test"), createMetrics("test")];
  for (let at = 0; at < 1_000; at++)
    threads[at % 2]?.request({ ...REQUEST, llm: { ...LLM, requestModel: `m-${at}`, responseModel: `r-${at}` } });
  for (const thread of threads) {
    thread.backend("b", "Llm").modelConfigured("configured");
    thread.request({ ...REQUEST, status: 503, reason: "UpstreamFailure", llm: { ...LLM, requestModel: "configured" } });
    assert.ok(modelsOf(thread).has("configured"));
    assert.equal(modelsOf(thread).size, 102);
  }
  const main = join(threads);
  const names = modelsOf(main);
  assert.ok(names.size <= 101 && names.has("other"));
  const answers = samples(main, "gen_ai_client_token_usage_count").map(({ labels }) => labels["gen_ai_response_model"]);
  assert.ok(new Set(answers).size <= 101);
});

test("a label of a user has a thousand values in counters and a hundred in histograms", () => {
  const metrics = createMetrics("test");
  for (let at = 0; at < 2_000; at++) metrics.request({ ...REQUEST, extra: ["tenant", `t${at}`], llm: LLM });
  const tenants = (name: string): number => new Set(samples(metrics, name).map(({ labels }) => labels["tenant"])).size;
  for (const name of ["requests_total", "response_bytes_total"]) assert.equal(tenants(name), 1_001, name);
  for (const name of ["request_duration_seconds", "request_processing_seconds", "gen_ai_client_token_usage"])
    assert.equal(tenants(`${name}_count`), 101, name);
});

test("what is lost is counted by what it was", () => {
  const metrics = createMetrics("test");
  metrics.dropped("log", "stdout", 3);
  metrics.dropped("otlp", "traces", 2);
  assert.deepEqual(samples(metrics, "log_dropped_total")[0], {
    name: "gwproxy_log_dropped_total",
    labels: { signal: "stdout" },
    value: 3,
  });
  assert.equal(samples(metrics, "otlp_dropped_total")[0]?.value, 2);
});

test("series of a route or a Bind are forgotten ten minutes after it is gone", () => {
  const metrics = createMetrics("test");
  const present = (routes: string[], binds = ["80/default/gw"]) => ({ routes: new Set(routes), binds: new Set(binds) });
  const counted = (): (string | undefined)[] => samples(metrics, "requests_total").map(({ labels }) => labels["route"]);
  const MINUTE = 60_000;
  for (const route of ["default/r", "default/gone", "default/back", "unknown"]) metrics.request({ ...REQUEST, route });
  metrics.connections({ bind: "81/default/gw", gateway: "default/gw", protocol: "tcp" }).opened();
  metrics.retire(present(["default/r"]), 0);
  metrics.retire(present(["default/r", "default/back"]), 5 * MINUTE);
  metrics.retire(present(["default/r"]), 9.9 * MINUTE);
  assert.equal(counted().length, 4);
  assert.equal(samples(metrics, "downstream_connections_total").length, 1);
  metrics.retire(present(["default/r"]), 10 * MINUTE);
  assert.deepEqual(counted(), ["default/r", "default/back", "unknown"]);
  assert.equal(samples(metrics, "request_duration_seconds_count").length, 3);
  assert.equal(samples(metrics, "request_processing_seconds_count").length, 3);
  assert.equal(samples(metrics, "downstream_connections_total").length, 0);
  metrics.retire(present(["default/r"]), 20 * MINUTE);
  assert.deepEqual(counted(), ["default/r", "unknown"]);
  // It counts from nothing when it is there again.
  metrics.request({ ...REQUEST, route: "default/gone" });
  assert.deepEqual(
    samples(metrics, "requests_total").map(({ value }) => value),
    [1, 1, 1],
  );
});

test("what threads have lost reaches the main one, each kind under its own name", () => {
  const [main, thread] = [createMetrics("1.2.3"), createMetrics("1.2.3")];
  thread.dropped("log", "access", 3);
  thread.dropped("otlp", "logs", 2);
  main.add(structuredClone(thread.take()));
  const lost = (name: string): unknown => samples(main, name).map(({ labels, value }) => [labels["signal"], value]);
  assert.deepEqual([lost("log_dropped_total"), lost("otlp_dropped_total")], [[["access", 3]], [["logs", 2]]]);
});
