/** What operators see of endpoint pickers: counters and times, the steps of `/debug/trace`, and spans. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../../support/clients/http.ts";
import { messagesOf, openWatch } from "../../support/clients/trace.ts";
import { documents, GATEWAY, startGateway } from "../../support/gateway/gateway.ts";
import { inferencePool, POOL_ROUTE, type PoolOptions } from "../../support/gateway/inference-pool.ts";
import { createMeasured } from "../../support/gateway/measured.ts";
import { CLIENT, only, startTraced } from "../../support/gateway/traced.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { startPicker, type PickerAnswer } from "../../support/servers/picker.ts";

const BACKEND = "inferencepool/default/llama";
const SHED: PickerAnswer = { immediate: { status: { code: 429 }, body: Buffer.from("shed") } };

/** What a picker does, and how it is reported. */
const RESULTS: readonly {
  readonly answer: (subset: readonly string[]) => PickerAnswer;
  readonly failureMode?: PoolOptions["failureMode"];
  readonly status: number;
  readonly result: string;
  readonly error?: string;
}[] = [
  { answer: (subset) => ({ to: subset.join(",") }), status: 200, result: "picked" },
  { answer: () => SHED, status: 429, result: "answered" },
  {
    answer: () => ({ to: "10.9.9.9:80" }),
    failureMode: "FailOpen",
    status: 200,
    result: "failed_open",
    error: "the picker names no endpoint of the pool",
  },
  { answer: () => ({ to: "" }), status: 503, result: "failed", error: "the picker names no endpoint" },
];

for (const { answer, failureMode = "FailClose", status, result, error } of RESULTS)
  test(`a picker whose question is ${result} is counted, timed and shown so`, async (t) => {
    const context = contextOf(t);
    const picker = await startPicker(context, ({ subset }) => answer(subset));
    const echoes = await Promise.all([startEcho(context), startEcho(context)]);
    const ports = echoes.map(({ port }) => port);
    const { metrics, counted, read } = createMeasured();
    const manifests = documents(GATEWAY, inferencePool({ ports, picker: picker.port, failureMode }), POOL_ROUTE);
    const gateway = await startGateway(context, manifests, { telemetry: { metrics } });
    const watch = await openWatch(gateway.proxy);
    for (let round = 0; round < 3; round++) assert.equal((await call(gateway.url())).status, status);

    const samples = await counted("endpoint_picker_requests_total", 3);
    assert.deepEqual(
      samples.map(({ labels, value }) => [labels, value]),
      [[{ backend: BACKEND, result }, 3]],
    );
    const [count] = read("endpoint_picker_seconds_count");
    assert.deepEqual([count?.labels, count?.value], [{ backend: BACKEND }, 3]);

    const events = await watch.events();
    const names = ports.map((port) => `127.0.0.1:${port}`).sort();
    const [pick, ...more] = messagesOf(events, "endpointPick");
    assert.deepEqual(more, []);
    const endpoints = Array.isArray(pick?.["endpoints"]) ? [...pick["endpoints"]].sort() : [];
    assert.deepEqual(
      { ...pick, endpoints },
      { type: "endpointPick", result, endpoints: result === "picked" ? names : [], error: error ?? null },
    );
    const chosen = messagesOf(events, "endpointSelection");
    assert.deepEqual(
      chosen.map(({ cause }) => cause),
      status === 200 ? [result === "picked" ? "override" : "score"] : [],
    );
    for (const { candidates } of chosen) assert.ok(Array.isArray(candidates) && candidates.length === 2);
  });

test("a request that ends before its picker has chosen is counted as cancelled", async (t) => {
  const context = contextOf(t);
  const picker = await startPicker(context, () => undefined);
  const { port } = await startEcho(context);
  const { metrics, counted } = createMeasured();
  const route = POOL_ROUTE.replace("{name: rule,", "{name: rule, timeouts: {request: 1s},");
  const manifests = documents(GATEWAY, inferencePool({ ports: [port], picker: picker.port }), route);
  const gateway = await startGateway(context, manifests, { telemetry: { metrics } });
  assert.equal((await call(gateway.url())).status, 504);
  const [sample] = await counted("endpoint_picker_requests_total", 1);
  assert.deepEqual(sample?.labels, { backend: BACKEND, result: "cancelled" });
});

test("the question to a picker is a span of its own beside that of the call", async (t) => {
  const context = contextOf(t);
  const picker = await startPicker(context, ({ subset }) => ({ to: subset.join(",") }));
  const { port } = await startEcho(context);
  const pool = inferencePool({ ports: [port], picker: picker.port });
  const { url, spans } = await startTraced(context, { port, base: [GATEWAY, pool, POOL_ROUTE] });
  assert.equal((await call(url)).status, 200);
  const all = await spans();
  const question = only(all, ({ attributes }) => attributes["outbound.subtype"] === "EndpointPicker");
  assert.deepEqual(
    [question.name, question.kind, question.attributes["outbound.kind"], question.attributes["error.type"]],
    ["envoy.service.ext_proc.v3.ExternalProcessor/Process", CLIENT, "Policy", undefined],
  );
  const primary = only(all, ({ attributes }) => attributes["outbound.kind"] === "Primary");
  assert.equal(primary.parentSpanId, question.parentSpanId);
});
