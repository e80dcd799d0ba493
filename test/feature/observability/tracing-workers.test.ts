/** Tracing in several threads: each decides and exports for itself, and what they hold at the end is sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { listener, policy, route, staticBackend, to } from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { CLIENT, SERVER } from "../../support/gateway/traced.ts";
import { connections, startWorkers } from "../../support/gateway/workers.ts";
import { startCollector } from "../../testbed/collector.ts";

test("the requests of all threads are traced, with ids that no two of them share", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const collector = await startCollector(context);
  const origin = { host: "127.0.0.1", port: collector.grpcPort };
  const tracing = policy("tracing", {
    targets: [{ target: { case: "gateway", value: "default/gw" } }],
    frontend: {
      tracing: {
        endpoint: { service: { place: { case: "origin", value: origin } } },
        randomSampling: "true",
        resources: [{ name: "where", expression: 'env.gateway + "." + env.namespace' }],
      },
    },
  });
  const resources = [listener(), route("r", [to("b")]), staticBackend("b", port), tracing];
  const { workers, port: bound } = await startWorkers(context, resources);
  const clients = await connections(context, bound);
  await workers.end();
  await collector.stop();
  const { spans } = collector;
  assert.equal(spans.length, clients.length * 2);
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, clients.length);
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
  const servers = new Map(spans.filter(({ kind }) => kind === SERVER).map((span) => [span.spanId, span.traceId]));
  for (const { kind, traceId, parentSpanId } of spans)
    if (kind === CLIENT) assert.equal(servers.get(parentSpanId), traceId);
  assert.deepEqual(new Set(spans.map(({ resource }) => resource["where"])), new Set(["gw.default"]));
});
