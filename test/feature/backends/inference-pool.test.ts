/** InferencePools through real sockets: the picker's choice, its own answers, and pickers that fail in every way. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { ServerCredentials } from "@grpc/grpc-js";
import { call, parseJson } from "../../support/clients/http.ts";
import { documents, GATEWAY, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { inferencePool, POOL_CHAT, POOL_ROUTE, type PoolOptions } from "../../support/gateway/inference-pool.ts";
import { gwModel, modelRoute } from "../../support/gateway/models.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { echoed, startEcho, type Echo } from "../../support/servers/echo.ts";
import { deadPort, startSocket } from "../../support/servers/grpc.ts";
import { startPicker, type Picker, type PickerAnswer, type Question } from "../../support/servers/picker.ts";
import { startProcServer } from "../../support/servers/proc-server.ts";
import { createSelfSigned } from "../../support/servers/tls-upstream.ts";

type Context = Pick<ProofContext, "after"> & ProofContext;

interface Setup {
  readonly gateway: TestGateway;
  readonly url: string;
  readonly servers: readonly Echo[];
}

async function startPool(
  context: Context,
  options: Omit<PoolOptions, "ports">,
  { servers = 2, more = [POOL_ROUTE] }: { readonly servers?: number; readonly more?: readonly string[] } = {},
): Promise<Setup> {
  const all = await Promise.all(
    Array.from({ length: servers }, (_, at) => startEcho(context, { tag: `server-${at}` })),
  );
  const ports = all.map(({ port }) => port);
  const gateway = await startGateway(context, documents(GATEWAY, inferencePool({ ...options, ports }), ...more));
  assert.deepEqual(
    gateway.problems().filter(({ severity }) => severity === "error"),
    [],
  );
  return { gateway, url: gateway.url(), servers: all };
}

/** Starts a picker and a pool whose client names the server by its number in the field `x-want`. */
async function withPicker(
  context: Context,
  choose: (question: Question) => PickerAnswer,
  options: Partial<PoolOptions> = {},
  more: readonly string[] = [POOL_ROUTE],
): Promise<Setup & { readonly picker: Picker }> {
  const picker = await startPicker(context, choose);
  const setup = await startPool(context, { ...options, picker: picker.port }, { more });
  return { ...setup, picker };
}

const wanted = ({ subset, headers }: Question): string => subset[Number(headers["x-want"] ?? 0)] ?? "";

test("the picker's choice is honoured for every request, and it hears which endpoint has served", async (context) => {
  const { url, servers, picker } = await withPicker(context, (question) => ({ to: wanted(question) }));
  const names = servers.map(({ port }) => `127.0.0.1:${port}`);
  const wishes = Array.from({ length: 60 }, (_, at) => (at * 7) % 2);
  const answers = await Promise.all(
    wishes.map((want, at) =>
      call(`${url}/v1/x`, {
        method: at % 3 === 0 ? "GET" : "POST",
        headers: { "x-want": String(want), "x-gateway-destination-endpoint": "10.0.0.1:1", "x-priority": "high" },
        ...(at % 3 === 0 ? {} : { body: `body ${at}` }),
      }),
    ),
  );
  for (const [at, { status, headers, body }] of answers.entries()) {
    assert.equal(status, 200);
    assert.equal(headers["x-upstream"], `server-${wishes[at]}`);
    const seen = echoed(body);
    assert.equal(seen.body, at % 3 === 0 ? "" : `body ${at}`);
    assert.equal(seen.headers["x-gateway-destination-endpoint"], undefined);
    assert.equal(seen.headers["x-priority"], "high");
  }
  assert.deepEqual([...(picker.asked[0]?.subset ?? [])].sort(), [...names].sort());
  assert.ok(picker.asked.every(({ headers }) => headers["x-gateway-destination-endpoint"] === undefined));
  assert.equal(picker.streams(), 60);
  const count = (of: readonly string[], name: string): number => of.filter((each) => each === name).length;
  for (const [at, name] of names.entries())
    assert.equal(count(picker.served, name), wishes.filter((want) => want === at).length);
});

test("header alone and metadata alone name an endpoint, and a changed body is what the server gets", async (context) => {
  for (const by of ["header", "metadata"] as const) {
    const { url } = await withPicker(context, (question) => ({ to: wanted(question), by, body: "theirs" }));
    const { status, headers, body } = await call(url, { method: "POST", headers: { "x-want": "1" }, body: "ours" });
    assert.deepEqual([status, headers["x-upstream"], echoed(body).body], [200, "server-1", "theirs"]);
  }
});

for (const failureMode of ["FailClose", "FailOpen"] as const) {
  test(`several endpoints are tried in order until one can be connected to, with the body (${failureMode})`, async (context) => {
    const dead = await deadPort();
    const picker = await startPicker(context, ({ subset }) => {
      const [gone = "", there = ""] = [`127.0.0.1:${dead}`, subset.find((name) => !name.endsWith(`:${dead}`))];
      return { to: `10.9.9.9:80, ${gone},${there}` };
    });
    const echo = await startEcho(context, { tag: "there" });
    const pool = inferencePool({ ports: [dead, echo.port], picker: picker.port, failureMode });
    const gateway = await startGateway(context, documents(GATEWAY, pool, POOL_ROUTE));
    const { status, headers, body } = await call(gateway.url(), { method: "POST", body: "hello" });
    assert.deepEqual([status, headers["x-upstream"], echoed(body).body], [200, "there", "hello"]);
    assert.deepEqual(picker.served, [`127.0.0.1:${echo.port}`]);
  });
}

test("an answer of the picker itself reaches the client", async (context) => {
  const immediate = { status: { code: 429 }, body: Buffer.from("shed") };
  const { url, servers } = await withPicker(context, () => ({ immediate }), { failureMode: "FailOpen" });
  const { status, body } = await call(url, { method: "POST", body: "hello" });
  assert.deepEqual([status, body], [429, "shed"]);
  assert.deepEqual(
    servers.flatMap(({ seen }) => seen),
    [],
  );
});

test("the picker is called over TLS without verification, unless its port says that it is plaintext", async (context) => {
  const { key, certificate } = createSelfSigned("picker.invalid");
  const credentials = ServerCredentials.createSsl(null, [
    { private_key: Buffer.from(key), cert_chain: Buffer.from(certificate) },
  ]);
  const picker = await startPicker(context, (question) => ({ to: wanted(question) }), { credentials });
  const { url } = await startPool(context, { picker: picker.port, tls: true });
  const { status, headers } = await call(url, { headers: { "x-want": "1" } });
  assert.deepEqual([status, headers["x-upstream"]], [200, "server-1"]);
});

/** Ways to fail, each as the port of a picker. */
const FAILURES: readonly (readonly [string, (context: Context) => Promise<number>])[] = [
  ["is away", () => deadPort()],
  ["hangs up", (context) => startSocket(context, (socket) => void socket.destroy())],
  ["speaks something else", (context) => startSocket(context, (socket) => void socket.end("HTTP/1.1 200 OK\r\n\r\n"))],
  ["names a stranger", async (context) => (await startPicker(context, () => ({ to: "10.9.9.9:8000" }))).port],
  ["names another port", async (context) => (await startPicker(context, () => ({ to: "127.0.0.1:1" }))).port],
  ["names nothing", async (context) => (await startPicker(context, () => ({ to: "" }))).port],
  ["writes nonsense", async (context) => (await startPicker(context, () => ({ to: `${",".repeat(9_000)}é` }))).port],
  [
    "closes its stream",
    async (context) => {
      const { port } = await startProcServer(context, (_message, stream) => void stream.end());
      return port;
    },
  ],
  ["answers something else", async (context) => (await startProcServer(context, () => ({}))).port],
  ["does not answer", async (context) => (await startPicker(context, () => undefined)).port],
];

const IMPATIENT = `apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: impatient}
spec:
  targetRefs: [{group: "", kind: Service, name: picker}]
  backend: {http: {requestTimeout: 300ms}}`;

for (const [how, start] of FAILURES) {
  test(`a picker that ${how} closes the pool, or opens it where its failure mode says so`, async (context) => {
    const picker = await start(context);
    for (const failureMode of ["FailClose", "FailOpen"] as const) {
      const { url, servers } = await startPool(context, { picker, failureMode }, { more: [POOL_ROUTE, IMPATIENT] });
      const answers = [await call(url, { method: "POST", body: "hello" }), await call(url)];
      if (failureMode === "FailClose") {
        for (const { status, body } of answers) assert.deepEqual([status, body], [503, "the endpoint picker failed"]);
        assert.deepEqual(
          servers.flatMap(({ seen }) => seen),
          [],
        );
      } else {
        assert.deepEqual(
          answers.map(({ status, body }) => [status, status === 200 ? echoed(body).body : body]),
          [
            [200, "hello"],
            [200, ""],
          ],
        );
      }
    }
  });
}

const CHAT = { model: "llama", messages: [{ role: "user", content: "hello" }] };

const TO_POOL = "backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: llama}";
const MEMBER_CHAT = POOL_CHAT.replace(
  /provider:[^]*?name: llama}/,
  `groups: [{providers: [{name: one, custom: {formats: [{type: Completions}], ${TO_POOL}}}]}]`,
);
const MODEL_CHAT = documents(
  modelRoute("web", "", "/"),
  gwModel(
    "llama",
    `parentRefs: [{kind: HTTPRoute, name: web}], provider: custom, custom: {formats: [{type: Completions}], ${TO_POOL}}`,
  ),
);

for (const [place, objects] of [
  ["GwBackend spec.ai.provider", POOL_CHAT],
  ["GwBackend spec.ai.groups[].providers[]", MEMBER_CHAT],
  ["GwModel spec", MODEL_CHAT],
] as const)
  prove(
    [`${place}.custom.backendRef.kind`, `${place}.custom.backendRef.group`],
    `a custom provider in front of a pool sends each call to the endpoint that the picker names (${place})`,
    async (context) => {
      const { url, picker } = await withPicker(context, (question) => ({ to: wanted(question) }), {}, [objects]);
      const { status } = await call(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-want": "1", "content-type": "application/json", authorization: "Bearer secret" },
        body: JSON.stringify(CHAT),
      });
      assert.notEqual(status, 503);
      const [question] = picker.asked;
      assert.deepEqual(parseJson(question?.body ?? ""), CHAT);
      assert.equal(question?.headers["authorization"], undefined);
      assert.deepEqual(picker.served, [question?.subset[1]]);
    },
  );

test("what a picker answers in place of a model reaches the client in its format", async (context) => {
  const immediate = { status: { code: 429 }, body: Buffer.from("shed") };
  const { url } = await withPicker(context, () => ({ immediate }), {}, [POOL_CHAT]);
  const { status, body } = await call(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(CHAT),
  });
  assert.equal(status, 429);
  const answer = parseJson(body) as { readonly error?: { readonly message?: string } };
  assert.equal(answer.error?.message, "shed");
});

const FAILOVER = (port: number): string =>
  documents(
    `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: chat}
spec:
  ai:
    groups:
      - providers:
          - name: pool
            custom:
              formats: [{type: Completions}]
              backendRef: {group: inference.networking.k8s.io, kind: InferencePool, name: llama}
            policies: {health: {unhealthyCondition: "response.code in [429, 503]", eviction: {consecutiveFailures: 1, duration: 60s}}}
      - providers:
          - {name: vendor, host: 127.0.0.1, port: ${port}, custom: {formats: [{type: Completions}]}}`,
    `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules:
    - backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: chat}]
      retry: {attempts: 1, codes: [429, 503]}`,
  );

for (const how of ["sheds", "fails", "has no endpoint to name"] as const) {
  test(`where the picker of the first group ${how}, the vendor of the second answers`, async (context) => {
    const immediate = { status: { code: 429 }, body: Buffer.from("shed") };
    const picker = await startPicker(context, () => (how === "sheds" ? { immediate } : { to: "10.9.9.9:80" }));
    const vendor = await startEcho(context, { tag: "vendor" });
    const pool = inferencePool({ ports: [await deadPort()], picker: picker.port });
    const empty = pool.replace("status: {podIP: 127.0.0.1}", "status: {podIP: 127.0.0.1, phase: Failed}");
    const manifests = documents(GATEWAY, how === "has no endpoint to name" ? empty : pool, FAILOVER(vendor.port));
    const gateway = await startGateway(context, manifests);
    for (let round = 0; round < 3; round++) {
      await call(`${gateway.url()}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(CHAT),
      });
    }
    assert.equal(vendor.seen.length, 3);
  });
}

test("a retry continues the list of the picker and does not ask again", async (context) => {
  const picker = await startPicker(context, ({ subset }) => ({ to: subset.join(",") }));
  const retrying = POOL_ROUTE.replace("{name: rule,", "{name: rule, retry: {attempts: 1, codes: [503]},");
  const { url } = await startPool(context, { picker: picker.port }, { more: [retrying] });
  const { headers } = await call(`${url}/status/503`, { method: "POST", body: "hello" });
  const [question] = picker.asked;
  assert.equal(picker.streams(), 1);
  assert.equal(question?.body, "hello");
  assert.equal(headers["x-upstream"], "server-1");
});

/** Pods at 127.0.1.x, of which those that the next turn leaves out are terminating. */
function pods(turn: number): string {
  const here = (at: number, of: number): boolean => (at + of * 17) % 100 < 60;
  const members = Array.from({ length: 100 }, (_, at) => at).filter((at) => here(at, turn) || here(at, turn - 1));
  return documents(
    ...members.map((at) => {
      const more = here(at, turn) ? "" : ", deletionTimestamp: 2026-01-01T00:00:00Z";
      return `{apiVersion: v1, kind: Pod, metadata: {name: more-${at}, labels: {app: llama}${more}}, status: {podIP: 127.0.1.${at + 1}}}`;
    }),
  );
}

test("a hundred endpoints that come and go under load cost no request", async (context) => {
  const picker = await startPicker(context, ({ subset, headers }) => ({
    to: subset[Number(headers["x-want"]) % Math.max(1, subset.length)] ?? "",
  }));
  const first = await startEcho(context);
  const port = first.port;
  for (let at = 1; at <= 100; at++) await startServerAt(context, `127.0.1.${at}`, port);
  const manifests = (turn: number): string =>
    documents(GATEWAY, inferencePool({ ports: [port], picker: picker.port }), POOL_ROUTE, pods(turn));
  const gateway = await startGateway(context, manifests(0));
  const url = gateway.url();
  let isOver = false;
  const answers: { readonly status: number; readonly by: unknown }[] = [];
  const clients = Array.from({ length: 6 }, async (_, at) => {
    for (let made = 0; !isOver || made < 5; made++) {
      const want = String(at + made);
      const { status, headers } = await call(url, { method: "POST", headers: { "x-want": want }, body: "hello" });
      answers.push({ status, by: headers["x-upstream"] });
    }
  });
  for (let turn = 1; turn <= 8; turn++) await gateway.change(manifests(turn));
  isOver = true;
  await Promise.all(clients);
  assert.deepEqual(
    answers.filter(({ status }) => status !== 200),
    [],
  );
  assert.ok(new Set(answers.map(({ by }) => by)).size > 5);
});

async function startServerAt(context: Context, address: string, port: number): Promise<void> {
  const server = createServer((incoming, response) => {
    incoming.resume().on("end", () => response.setHeader("x-upstream", address).end());
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
}
