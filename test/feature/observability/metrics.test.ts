/** The metrics of a data plane through real sockets: what is counted for requests, calls and connections. */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { createMeasured, sumOf, type Measured } from "../../support/gateway/measured.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { replicaService, servicePolicy, startReplicas, type Replica } from "../../support/servers/replicas.ts";

interface Served extends Measured {
  readonly gateway: TestGateway;
}

async function serve(t: TestContext, ...manifests: readonly string[]): Promise<Served> {
  const measured = createMeasured();
  const telemetry = { metrics: measured.metrics };
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, ...manifests), { telemetry });
  assert.deepEqual(gateway.problems(), []);
  return { ...measured, gateway };
}

/** Answers to all that it is asked in the same way. @returns its port */
async function startServer(t: TestContext, answer: (response: ServerResponse) => void): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => answer(response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  // A TCP server that listens on a port has an address of this form.
  return (server.address() as AddressInfo).port;
}

test("calls that were made again are counted with their request, each call by itself", async (t) => {
  const [bad, good] = (await startReplicas(contextOf(t), "bad", "good")) as [Replica, Replica];
  bad.answer = (_request, response) => void response.writeHead(503).end("no");
  const again = routePolicy("again", "web", "  traffic: {retry: {attempts: 1, codes: [503]}}");
  const { gateway, counted, read } = await serve(t, replicaService([bad, good]), again);
  for (let asked = 0; asked < 40; asked++) assert.equal((await call(gateway.url())).status, 200);
  await counted("requests_total", 40);
  assert.ok(bad.hits > 0);
  const [retries] = read("retries_total");
  assert.equal(retries?.value, bad.hits);
  assert.equal(retries?.labels["route"], "default/web");
  assert.equal(
    sumOf(read("upstream_call_duration_seconds_count", { kind: "Primary", subtype: "Http" })),
    40 + bad.hits,
  );
});

test("questions of policies and copies of requests are calls of their own kind", async (t) => {
  const [web, copies] = [await startEcho(contextOf(t)), await startEcho(contextOf(t))];
  const check = await startServer(t, (response) => void response.writeHead(200).end());
  const mirrored = route("web", "web").replace(
    "      backendRefs:",
    `      filters: [{type: RequestMirror, requestMirror: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: copies}}}]
      backendRefs:`,
  );
  const asks = "{backendRef: {group: gwproxy.dev, kind: GwBackend, name: check}, http: {}}";
  const { gateway, counted } = await serve(
    t,
    staticBackend("web", web.port),
    staticBackend("copies", copies.port),
    staticBackend("check", check),
    mirrored,
    routePolicy("check", "web", `  traffic: {extAuth: ${asks}}`),
  );
  for (let asked = 0; asked < 3; asked++) assert.equal((await call(gateway.url())).status, 200);
  const calls = "upstream_call_duration_seconds_count";
  assert.equal(sumOf(await counted(calls, 3, { kind: "Policy", subtype: "ExtAuthz" })), 3);
  assert.equal(sumOf(await counted(calls, 3, { kind: "Mirror", subtype: "Http" })), 3);
  assert.equal(sumOf(await counted(calls, 3, { kind: "Primary", subtype: "Http" })), 3);
  // A copy is no request of a client.
  assert.equal(sumOf(await counted("requests_total", 3)), 3);
});

test("connections to a backend are counted when they are made, and told while they serve and while they wait", async (t) => {
  const waiting: ServerResponse[] = [];
  const asked = Promise.withResolvers<void>();
  const port = await startServer(t, (response) => {
    waiting.push(response);
    asked.resolve();
  });
  const { gateway, read, counted } = await serve(t, staticBackend("web", port), route("web", "web"));
  const pool = (state: string): number => sumOf(read("upstream_pool_connections", { backend: "default/web", state }));
  const answer = call(gateway.url());
  await asked.promise;
  assert.deepEqual([pool("active"), pool("idle")], [1, 0]);
  waiting[0]?.end("ok");
  await answer;
  await counted("requests_total", 1);
  assert.deepEqual([pool("active"), pool("idle")], [0, 1]);
  const [connects] = read("upstream_connect_duration_seconds_count");
  assert.deepEqual([connects?.labels, connects?.value], [{ transport: "plaintext" }, 1]);
});

test("endpoints that are put out of rotation are counted for their backend", async (t) => {
  const replicas = await startReplicas(contextOf(t), "one", "two");
  for (const replica of replicas) replica.answer = (_request, response) => void response.writeHead(418).end();
  const health =
    "{health: {unhealthyCondition: 'response.code == 418', eviction: {duration: 60s, consecutiveFailures: 1}}}";
  const { gateway, counted, read } = await serve(t, replicaService(replicas), servicePolicy(health));
  while (replicas.some(({ hits }) => hits === 0)) await call(gateway.url());
  const ejections = await counted("endpoint_ejections_total", 2);
  assert.deepEqual(ejections, [
    { name: "gwproxy_endpoint_ejections_total", labels: { backend: "service/default/web:80" }, value: 2 },
  ]);
  const told = read("endpoint_health").map(({ labels }) => labels["backend"]);
  assert.deepEqual([...new Set(told)], ["service/default/web:80"]);
});

test("time before the first call and after its answer is ours", async (t) => {
  const { gateway, counted, read } = await serve(
    t,
    staticBackend("web", await startServer(t, (response) => void response.end("ok"))),
    route("web", "web"),
    routePolicy("late", "web", "  traffic: {delay: {duration: 1s}}"),
  );
  await call(gateway.url());
  await counted("requests_total", 1);
  const [before] = read("request_processing_seconds_sum");
  assert.ok((before?.value ?? 0) >= 0.95, String(before?.value));
  assert.deepEqual(before?.labels["route"], "default/web");
  const [after] = read("response_processing_seconds_sum");
  assert.ok((after?.value ?? 1) < (before?.value ?? 0));
});

test("a request that reaches no backend has no time of ours before and after it", async (t) => {
  const { gateway, counted, read } = await serve(t);
  assert.equal((await call(gateway.url())).status, 404);
  await counted("requests_total", 1, { reason: "NotFound" });
  assert.deepEqual(read("request_processing_seconds_count"), []);
  assert.deepEqual(read("response_processing_seconds_count"), []);
});

test("a stream of a model tells when its first token came and how fast the others did", async (t) => {
  const events = [
    { model: "of-the-provider", choices: [{ index: 0, delta: { role: "assistant", content: "a" } }] },
    { model: "of-the-provider", choices: [{ index: 0, delta: { content: "b" } }] },
    { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
  ];
  const port = await startServer(t, (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  const { gateway, counted, read } = await serve(
    t,
    `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {custom: {formats: [{type: Completions}]}, host: 127.0.0.1, port: ${port}}}`,
    route("ai", "ai"),
  );
  const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] });
  const headers = { "content-type": "application/json" };
  const answer = await call(`${gateway.url()}/v1/chat/completions`, { method: "POST", headers, body });
  assert.equal(answer.status, 200);
  const [first] = await counted("gen_ai_server_time_to_first_token_count", 1);
  const { gen_ai_operation_name, gen_ai_request_model, gen_ai_response_model, route: at } = first?.labels ?? {};
  assert.deepEqual(
    [gen_ai_operation_name, gen_ai_request_model, gen_ai_response_model, at],
    ["chat", "m", "of-the-provider", "default/ai"],
  );
  assert.equal(sumOf(read("gen_ai_server_time_per_output_token_count")), 1);
  const [took] = read("gen_ai_server_request_duration_sum");
  const [until] = read("gen_ai_server_time_to_first_token_sum");
  assert.ok((until?.value ?? 0) > 0 && (until?.value ?? 0) < (took?.value ?? 0));
  const tokens = read("gen_ai_client_token_usage_sum").map(({ labels, value }) => [labels["gen_ai_token_type"], value]);
  assert.deepEqual(tokens, [
    ["input", 3],
    ["output", 2],
  ]);
  assert.equal(sumOf(read("upstream_call_duration_seconds_count", { kind: "Primary", subtype: "Llm" })), 1);
});
