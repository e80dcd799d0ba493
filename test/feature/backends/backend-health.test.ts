/** `health` through real sockets: on a Service, on the groups of a model backend, and on one provider of a group. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { EndpointDump } from "../../../src/proxy/balancing/endpoint-dump.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { model, modelRoute, service, virtual } from "../../support/gateway/models.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { replicaService, servicePolicy, startReplicas, type Replica } from "../../support/servers/replicas.ts";

const CONDITION = `unhealthyCondition: 'response.code == 418'`;
const MANY = 60;
const ROUTE = "{kind: HTTPRoute, name: models}";

interface Place {
  /** Of the fields in the ledger. */
  readonly prefix: string;
  readonly where: string;
  /** @param health flow YAML */
  manifests(replicas: readonly Replica[], health: string): string[];
}

function aiBackend(replicas: readonly Replica[], options: { ofProvider?: string; ofBackend?: string }): string {
  const policies = options.ofProvider === undefined ? "" : `, policies: {health: ${options.ofProvider}}`;
  const providers = replicas.map(
    ({ name, port }) =>
      `{name: ${name}, custom: {model: m, formats: [{type: Completions}]}, host: 127.0.0.1, port: ${port}${policies}}`,
  );
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {groups: [{providers: [${providers.join(", ")}]}]}
${options.ofBackend === undefined ? "" : `  policies: {health: ${options.ofBackend}}`}`;
}

const PLACES: readonly Place[] = [
  {
    prefix: "GwPolicy spec.backend",
    where: "a Service",
    manifests: (replicas, health) => [replicaService(replicas), servicePolicy(`{health: ${health}}`)],
  },
  {
    prefix: "GwBackend spec.policies",
    where: "the groups of a backend",
    manifests: (replicas, ofBackend) => [aiBackend(replicas, { ofBackend }), route("web", "ai")],
  },
  {
    prefix: "GwBackend spec.ai.groups[].providers[].policies",
    where: "a provider",
    manifests: (replicas, ofProvider) => [aiBackend(replicas, { ofProvider }), route("web", "ai")],
  },
  {
    prefix: "GwModel spec.policies",
    where: "a model",
    manifests: (replicas, health) => [
      modelRoute("models", "", "/"),
      ...replicas.map(({ name, port }) => service(name, port)),
      ...replicas.map(({ name }) =>
        model(name, { parents: ROUTE, to: name, more: `policies: {health: ${health}}, visibility: Internal` }),
      ),
      virtual(
        "m",
        `failover: {targets: [${replicas.map(({ name }) => `{modelRef: {name: ${name}}, priority: 0}`).join()}]}`,
        ROUTE,
      ),
    ],
  },
];

interface Scene {
  readonly gateway: TestGateway;
  readonly clock: { now: number };
  /** Fails with 418 until a test says otherwise. */
  readonly bad: Replica;
  readonly good: Replica;
  ask(): Promise<Answer>;
  /** Asks until the bad one was hit once more. */
  hitBad(): Promise<void>;
  /** How often the bad one was hit by so many requests. */
  hitsOfBad(requests: number): Promise<number>;
  dumpOfBad(): Promise<EndpointDump>;
}

async function stage(context: ProofContext, place: Place, health: string): Promise<Scene> {
  const [bad, good] = (await startReplicas(context, "bad", "good")) as [Replica, Replica];
  for (const replica of [bad, good])
    replica.answer = (_request, response) => {
      response.statusCode = replica === bad ? 418 : 200;
      response.setHeader("content-type", "application/json");
      response.end("{}");
    };
  const clock = { now: 1_000_000 };
  const manifests = documents(GATEWAY, ...place.manifests([bad, good], health));
  const gateway = await startGateway(context, manifests, { nowMs: () => clock.now });
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
  const ask = () =>
    call(`${gateway.url()}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
  return {
    gateway,
    clock,
    bad,
    good,
    ask,
    async hitBad() {
      const { hits } = bad;
      for (let asked = 0; bad.hits === hits; asked++) {
        assert.ok(asked < 500, "it is never asked");
        await ask();
      }
    },
    async hitsOfBad(requests) {
      const { hits } = bad;
      for (let asked = 0; asked < requests; asked++) await ask();
      return bad.hits - hits;
    },
    async dumpOfBad() {
      const { endpoints } = await gateway.proxy.state();
      // A model is known by its name, and the Service behind it has an endpoint of its own.
      const names = ["default/bad", "bad", `127.0.0.1:${bad.port}`];
      const found = names.map((name) => endpoints.find(({ endpoint }) => endpoint === name)).find((each) => each);
      assert.ok(found);
      return found;
    },
  };
}

for (const place of PLACES) {
  const field = (name: string) => `${place.prefix}.health.${name}`;

  prove(field("unhealthyCondition"), `what the condition finds leaves the rotation: ${place.where}`, async (t) => {
    const scene = await stage(t, place, `{${CONDITION}, eviction: {duration: 1h}}`);
    await scene.hitBad();
    assert.equal(await scene.hitsOfBad(MANY), 0);
    assert.equal((await scene.dumpOfBad()).timesEjected, 1);
  });

  prove(
    field("eviction.duration"),
    `the eviction lasts as long as was said, then twice as long: ${place.where}`,
    async (t) => {
      const scene = await stage(t, place, `{${CONDITION}, eviction: {duration: 10m}}`);
      await scene.hitBad();
      scene.clock.now += 599_999;
      assert.equal(await scene.hitsOfBad(MANY), 0);
      scene.clock.now += 1;
      await scene.hitBad();
      scene.clock.now += 1_199_999;
      assert.equal(await scene.hitsOfBad(MANY), 0);
      scene.clock.now += 1;
      await scene.hitBad();
    },
  );

  prove(field("eviction.restoreHealth"), `it returns with the health that was said: ${place.where}`, async (t) => {
    const scene = await stage(t, place, `{${CONDITION}, eviction: {duration: 1m, restoreHealth: 25}}`);
    await scene.hitBad();
    assert.equal((await scene.dumpOfBad()).health, 0.7);
    scene.clock.now += 60_000;
    assert.deepEqual([(await scene.dumpOfBad()).health, (await scene.dumpOfBad()).evictedUntil], [0.25, null]);
  });

  prove(field("eviction.consecutiveFailures"), `only so many failures in a row evict: ${place.where}`, async (t) => {
    const scene = await stage(t, place, `{${CONDITION}, eviction: {duration: 1h, consecutiveFailures: 2}}`);
    await scene.hitBad();
    assert.deepEqual(
      [(await scene.dumpOfBad()).consecutiveFailures, (await scene.dumpOfBad()).evictedUntil],
      [1, null],
    );
    await scene.hitBad();
    assert.equal(await scene.hitsOfBad(MANY), 0);
  });

  prove(field("eviction.healthThreshold"), `only a score below the limit evicts: ${place.where}`, async (t) => {
    const scene = await stage(t, place, `{${CONDITION}, eviction: {duration: 1h, healthThreshold: 50}}`);
    for (let failures = 0; failures < 2; failures++) {
      await scene.hitBad();
      assert.equal((await scene.dumpOfBad()).evictedUntil, null);
    }
    await scene.hitBad();
    assert.equal(await scene.hitsOfBad(MANY), 0);
  });
}

const [SERVICE] = PLACES as readonly [Place, ...Place[]];

test("without a condition failures lower the score and evict nobody, and all are used when all are out", async (t) => {
  const scene = await stage(contextOf(t), SERVICE, "{eviction: {duration: 1h}}");
  scene.bad.answer = (_request, response) => response.writeHead(500).end();
  for (let failures = 0; failures < 3; failures++) await scene.hitBad();
  const { health, consecutiveFailures, timesEjected, evictedUntil } = await scene.dumpOfBad();
  assert.deepEqual([health, consecutiveFailures, timesEjected, evictedUntil], [0.7 * 0.7 * 0.7, 3, 0, null]);
});

test("all are used when all are out", async (t) => {
  const scene = await stage(contextOf(t), SERVICE, `{${CONDITION}, eviction: {duration: 1h}}`);
  scene.good.answer = scene.bad.answer;
  for (let asked = 0; asked < MANY; asked++) assert.equal((await scene.ask()).status, 418);
  const { endpoints } = await scene.gateway.proxy.state();
  const until = endpoints.map(({ evictedUntil }) => evictedUntil);
  assert.ok(
    until.every((time) => time !== null && Number.isFinite(Date.parse(time))),
    String(until),
  );
});

test("an upstream that cannot be reached is what the condition sees as the answer that the client gets", async (t) => {
  const scene = await stage(
    contextOf(t),
    SERVICE,
    `{unhealthyCondition: 'response.code == 503', eviction: {duration: 1h}}`,
  );
  scene.bad.answer = (request) => request.socket.destroy();
  await scene.hitBad();
  assert.equal(await scene.hitsOfBad(MANY), 0);
});

test("a condition sees headers before policies change them, and the body of the answer", async (t) => {
  const condition = `response.headers["x-state"] == "ill" && json(response.body).state == "ill"`;
  const context = contextOf(t);
  const [bad, good] = (await startReplicas(context, "bad", "good")) as [Replica, Replica];
  for (const replica of [bad, good])
    replica.answer = (_request, response) => {
      const state = replica === bad ? "ill" : "well";
      response.setHeader("x-state", state);
      response.write(`{"state": `);
      setImmediate(() => response.end(`"${state}"}`));
    };
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      replicaService([bad, good]),
      servicePolicy(`{health: {unhealthyCondition: '${condition}', eviction: {duration: 1h}}}`),
      routePolicy("strip", "web", "  traffic: {headerModifiers: {response: {remove: [x-state]}}}"),
    ),
  );
  while (bad.hits === 0) {
    const { headers, body } = await call(gateway.url());
    assert.deepEqual([headers["x-state"], body], [undefined, `{"state": "${bad.hits === 0 ? "well" : "ill"}"}`]);
  }
  for (let asked = 0; asked < MANY; asked++) assert.equal((await call(gateway.url())).body, `{"state": "well"}`);
});

test("a hint of the upstream is how long it stays out, and without one or a back-off it stays in", async (t) => {
  const scene = await stage(contextOf(t), SERVICE, `{unhealthyCondition: 'response.code == 429'}`);
  scene.bad.answer = (_request, response) => response.writeHead(429).end("{}");
  await scene.hitBad();
  assert.equal((await scene.dumpOfBad()).evictedUntil, null);
  scene.bad.answer = (_request, response) => response.writeHead(429, { "retry-after": "100" }).end("{}");
  await scene.hitBad();
  scene.clock.now += 99_999;
  assert.equal(await scene.hitsOfBad(MANY), 0);
  scene.clock.now += 1;
  await scene.hitBad();
  scene.bad.answer = (_request, response) => response.writeHead(429, { "retry-after": "999999999999999" }).end("{}");
  scene.clock.now += 200_000;
  await scene.hitBad();
  assert.match(String((await scene.dumpOfBad()).evictedUntil), /^\+275760-/, "as late as a date can be");
});

test("the first group serves until all of it is out, and again when it is back", async (t) => {
  const context = contextOf(t);
  const [first, second] = (await startReplicas(context, "first", "second")) as [Replica, Replica];
  const answer =
    (name: string, status: number): Replica["answer"] =>
    (_request, response) => {
      response.writeHead(status, { "content-type": "application/json", "x-provider": name }).end("{}");
    };
  first.answer = answer("first", 503);
  second.answer = answer("second", 200);
  const provider = ({ name, port }: Replica) =>
    `{providers: [{name: ${name}, custom: {model: m, formats: [{type: Completions}]}, host: 127.0.0.1, port: ${port}}]}`;
  const clock = { now: 1_000_000 };
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {groups: [${provider(first)}, ${provider(second)}]}
  policies: {health: {unhealthyCondition: 'response.code == 503', eviction: {duration: 1m}}}`,
      route("web", "ai"),
      routePolicy("again", "web", "  traffic: {retry: {codes: [503]}}"),
    ),
    { nowMs: () => clock.now },
  );
  const body = JSON.stringify({ model: "m", messages: [] });
  const serve = async () => {
    const answered = await call(gateway.url(), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    return [answered.status, answered.headers["x-provider"], first.hits];
  };
  assert.deepEqual(await serve(), [200, "second", 1], "the attempt that evicts moves the next one on");
  assert.deepEqual(await serve(), [200, "second", 1]);
  first.answer = answer("first", 200);
  clock.now += 60_000;
  assert.deepEqual(await serve(), [200, "first", 2]);
});

test("a client that sends slowly, or goes away, says nothing about the endpoint", async (t) => {
  const context = contextOf(t);
  const [only] = (await startReplicas(context, "only")) as [Replica];
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      replicaService([only]),
      servicePolicy(`{health: {unhealthyCondition: 'response.code == 504', eviction: {duration: 1h}}}`),
      routePolicy("limit", "web", "  traffic: {timeouts: {request: 2s}}"),
    ),
  );
  const failures = async () =>
    (await gateway.proxy.state()).endpoints.map(({ consecutiveFailures }) => consecutiveFailures);
  const slow = request(gateway.url(), { method: "POST", agent: false });
  slow.on("error", () => undefined);
  slow.write("half of it");
  const [answer] = (await once(slow, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 504);
  slow.destroy();
  assert.deepEqual(await failures(), [0]);
  only.answer = () => undefined;
  const gone = request(gateway.url(), { agent: false });
  gone.on("error", () => undefined);
  const { hits } = only;
  gone.end();
  while (only.hits === hits) await nextTurn();
  gone.destroy();
  assert.equal((await call(gateway.url())).status, 504);
  assert.deepEqual(await failures(), [1], "the second one waited for the endpoint");
});

test("the strongest level that says anything about health says all of it", async (t) => {
  const strict = `{${CONDITION}, eviction: {duration: 1h}}`;
  const levels = [
    routePolicy("of-the-route", "web", `  backend: {health: ${strict}}`),
    gatewayPolicy("of-the-gateway", `  backend: {health: ${strict}}`),
  ];
  for (const weaker of levels)
    for (const stronger of [[], [servicePolicy("{health: {eviction: {duration: 1h}}}")]]) {
      const place = {
        ...SERVICE,
        manifests: (replicas: readonly Replica[]) => [replicaService(replicas), weaker, ...stronger],
      };
      const scene = await stage(contextOf(t), place, "");
      await scene.hitBad();
      assert.equal((await scene.dumpOfBad()).timesEjected, stronger.length === 0 ? 1 : 0);
    }
});
