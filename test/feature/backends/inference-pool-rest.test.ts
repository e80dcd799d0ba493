/** An InferencePool together with the rest: gRPC, TLS, settings for backends, streams, mirrors, dumps and statuses. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, status, type ServiceError } from "@grpc/grpc-js";
import { Authorization, CheckRequestSchema } from "../../../generated/proto/envoy/service/auth/v3/external_auth_pb.ts";
import { methodDefinition } from "../../../src/lib/grpc.ts";
import { configDump } from "../../../src/runtime/dump.ts";
import { computeStatus } from "../../../src/status/compute.ts";
import { call } from "../../support/clients/http.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { inferencePool, POOL_CHAT, POOL_ROUTE } from "../../support/gateway/inference-pool.ts";
import { policy } from "../../support/proofs/policy-places.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startAuthServer } from "../../support/servers/auth-server.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startPicker, type Picker, type PickerAnswer, type Question } from "../../support/servers/picker.ts";
import { startTlsUpstream } from "../../support/servers/tls-upstream.ts";

const POOL_REF = "{group: inference.networking.k8s.io, kind: InferencePool, name: llama}";
const all = ({ subset }: Question): PickerAnswer => ({ to: subset.join(",") });

interface Setup {
  readonly gateway: TestGateway;
  readonly picker: Picker;
}

/** Starts a pool with one server at this port. */
async function startPool(
  context: ProofContext,
  port: number,
  {
    choose = all,
    route = POOL_ROUTE,
    more = [],
  }: { choose?: typeof all; route?: string; more?: readonly string[] } = {},
): Promise<Setup> {
  const picker = await startPicker(context, (question) => choose(question));
  const pool = inferencePool({ ports: [port], picker: picker.port });
  const gateway = await startGateway(context, documents(GATEWAY, pool, route, ...more));
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return { gateway, picker };
}

const GRPC_ROUTE = `apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [${POOL_REF}]}]`;

async function callGrpc(context: ProofContext, url: string): Promise<ServiceError | null> {
  const client = new Client(url.slice("http://".length), credentials.createInsecure());
  context.after(() => client.close());
  const { path, requestSerialize, responseDeserialize } = methodDefinition(Authorization.method.check);
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, create(CheckRequestSchema), resolve);
  });
}

test("gRPC calls of a GRPCRoute go where the picker says, and fail with the status of what went wrong", async (t) => {
  const context = contextOf(t);
  const server = await startAuthServer(context);
  let choose = all;
  const { gateway, picker } = await startPool(context, server.port, {
    route: GRPC_ROUTE,
    choose: (question) => choose(question),
  });
  assert.equal(await callGrpc(context, gateway.url()), null);
  assert.deepEqual([server.seen.length, picker.served], [1, [`127.0.0.1:${server.port}`]]);
  choose = () => ({ to: "10.9.9.9:80" });
  assert.equal((await callGrpc(context, gateway.url()))?.code, status.UNAVAILABLE);
  choose = () => ({ immediate: { status: { code: 429 }, grpcStatus: { status: status.RESOURCE_EXHAUSTED } } });
  assert.equal((await callGrpc(context, gateway.url()))?.code, status.RESOURCE_EXHAUSTED);
  assert.equal(server.seen.length, 1);
});

for (const [way, route] of [
  ["a route", POOL_ROUTE],
  ["a provider", POOL_CHAT],
] as const)
  test(`a BackendTLSPolicy on a pool verifies its servers, reached through ${way}`, async (t) => {
    const context = contextOf(t);
    const upstream = await startTlsUpstream(context, ["models.test"]);
    const tls = (hostname: string) => `apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: servers}
spec:
  targetRefs: [${POOL_REF}]
  validation: {hostname: ${hostname}, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}`;
    const picker = await startPicker(context, all);
    const fixed = documents(
      GATEWAY,
      inferencePool({ ports: [upstream.port], picker: picker.port }),
      route,
      pemObject("ConfigMap", "ca", { "ca.crt": upstream.authority }),
    );
    const gateway = await startGateway(context, documents(fixed, tls("models.test")));
    const ask = () =>
      call(`${gateway.url()}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
      });
    const first = await ask();
    // The server shows the handshake in place of a completion.
    if (way === "a route") assert.equal((JSON.parse(first.body) as { serverName: string }).serverName, "models.test");
    const reached = first.status;
    await gateway.change(documents(fixed, tls("other.test")));
    const second = await ask();
    assert.equal(second.status, 503, second.body);
    assert.notEqual(reached, 503);
  });

test("settings for backends on a pool hold for every request to it", async (t) => {
  const context = contextOf(t);
  const { port, seen } = await startEcho(context);
  const settings = [
    "auth: {key: of-the-pool}",
    "transformation: {request: {set: [{name: x-set, value: '\"by the pool\"'}]}}",
    "http: {requestTimeout: 2s}",
  ];
  const { gateway, picker } = await startPool(context, port, {
    more: [policy("settings", { refs: POOL_REF, says: `backend: {${settings.join(", ")}}` })],
  });
  const { status: code, body } = await call(gateway.url(), { headers: { authorization: "Bearer of-the-client" } });
  assert.equal(code, 200);
  const { headers } = echoed(body);
  assert.deepEqual([headers["authorization"], headers["x-set"]], ["Bearer of-the-pool", "by the pool"]);
  assert.equal(picker.asked[0]?.headers["authorization"], "Bearer of-the-client");
  assert.equal(seen.length, 1);
  const hanging = createServer(() => undefined);
  hanging.listen(0, "127.0.0.1");
  await once(hanging, "listening");
  context.after(() => {
    hanging.closeAllConnections();
    hanging.close();
  });
  const { port: silent } = hanging.address() as { port: number }; // it listens on a port
  const pool = inferencePool({ ports: [silent], picker: picker.port });
  const limits = policy("settings", { refs: POOL_REF, says: `backend: {${settings.join(", ")}}` });
  await gateway.change(documents(GATEWAY, pool, POOL_ROUTE, limits));
  assert.equal((await call(gateway.url())).status, 504);
});

test("events of a stream pass one by one while the server is still writing", async (t) => {
  const context = contextOf(t);
  let next: (() => void) | undefined;
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    next = () => void response.end("data: 2\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => void server.close());
  const { port } = server.address() as { port: number }; // it listens on a port
  const { gateway, picker } = await startPool(context, port);
  const response = await fetch(gateway.url(), { method: "POST", body: "go" });
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  assert.equal(decoder.decode((await reader?.read())?.value), "data: 1\n\n");
  next?.();
  assert.equal(decoder.decode((await reader?.read())?.value), "data: 2\n\n");
  assert.deepEqual(picker.served, [`127.0.0.1:${port}`]);
});

test("a mirror to a pool is sent where its picker says, unless traffic policies govern the pool", async (t) => {
  const context = contextOf(t);
  const main = await startEcho(context, { tag: "main" });
  const copies = await startEcho(context);
  const picker = await startPicker(context, all);
  const route = POOL_ROUTE.replace(
    /rules: .*/,
    `rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: ${POOL_REF}}}], backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: main}]}]`,
  );
  const pool = inferencePool({ ports: [copies.port], picker: picker.port });
  const fixed = documents(GATEWAY, pool, staticBackend("main", main.port), route);
  const gateway = await startGateway(context, fixed);
  const ask = async () => (await call(gateway.url(), { method: "POST", body: "hi" })).headers["x-upstream"];
  assert.equal(await ask(), "main");
  while (copies.seen.length < 1) await setImmediate();
  const closed = policy("guard", {
    refs: POOL_REF,
    says: "traffic: {authorization: {action: Deny, policy: {matchExpressions: ['true']}}}",
  });
  await gateway.change(documents(fixed, closed));
  assert.equal(await ask(), "main");
  await gateway.change(fixed);
  assert.equal(await ask(), "main");
  // Copies leave in order, so the one in between was never sent.
  while (copies.seen.length < 2) await setImmediate();
  assert.equal(picker.streams(), 2);
});

test("dumps show the pool and its policies, and the policy's status names the Gateways that reach it", async (t) => {
  const context = contextOf(t);
  const { port } = await startEcho(context);
  const own = policy("own", {
    refs: POOL_REF,
    says: "traffic: {timeouts: {request: 9s}}, backend: {http: {requestTimeout: 8s}}",
  });
  const { gateway } = await startPool(context, port, { more: [own] });
  const process = { config: {}, applied: { sync: () => ({}) } } as unknown as Parameters<typeof configDump>[1];
  const dump = JSON.parse(JSON.stringify(configDump(await gateway.proxy.state(), process))) as {
    readonly policies: readonly Record<string, unknown>[];
    readonly backends: readonly Record<string, unknown>[];
  };
  const shown = dump.policies.find(({ key }) => String(key).includes("default/own"));
  assert.ok(JSON.stringify(shown?.["target"]).includes("inferencepool/default/llama"), JSON.stringify(shown));
  assert.ok(/timeouts/.test(JSON.stringify(shown?.["policy"])) && /8000/.test(JSON.stringify(shown?.["policy"])));
  const pool = dump.backends.find(({ key }) => key === "inferencepool/default/llama");
  assert.ok(JSON.stringify(pool?.["endpoints"]).includes(`127.0.0.1:${port}`), JSON.stringify(pool));

  const input = gateway.translator.statusInput({
    group: "gwproxy.dev",
    kind: "GwPolicy",
    namespace: "default",
    name: "own",
  });
  assert.ok(input !== undefined);
  const computed = computeStatus(input, {
    controllerName: "gwproxy.dev/gwproxy",
    acknowledged: () => true,
    hasDataPlane: () => true,
    nackReason: () => undefined,
  });
  assert.ok(computed.form === "listed");
  assert.deepEqual(
    computed.entries.map(({ ref, conditions }) => [
      ref["kind"],
      ref["name"],
      conditions.map(({ type, reason }) => `${type} ${reason}`),
    ]),
    [["Gateway", "gw", ["Accepted Valid", "Attached Attached"]]],
  );
});
