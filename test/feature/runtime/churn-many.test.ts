/** Hundreds of routes come, change and go: the other traffic does not notice, and what is gone leaves nothing behind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapSnapshot } from "node:v8";
import { startEcho } from "../../support/servers/echo.ts";
import { startFedGateway, type FedGateway, type Manifest } from "../../support/gateway/fed-gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startSteadyLoad } from "../../support/gateway/steady-load.ts";

const ROUTES = 300;
const EDITS = 600;
/** Of this many routes one is asked for after each change. */
const SAMPLE = 10;
const CONNECTIONS = 4;

const GATEWAY: Manifest = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "gw" },
  spec: { gatewayClassName: "gwproxy", listeners: [{ name: "http", port: 8080, protocol: "HTTP" }] },
};

test("hundreds of routes come, change and go while endpoints flap, and no other request fails", async (t) => {
  const context = contextOf(t);
  const [one, other] = await Promise.all([
    startEcho(context, { tag: "steady" }),
    startEcho(context, { tag: "steady" }),
  ]);
  const slices = [one.port, other.port].map((port, at) => slice("flapping", at, port));
  const gateway = await startFedGateway(
    context,
    GATEWAY,
    backend("steady", one.port),
    route("steady", "/steady", toBackend("steady")),
    service("flapping"),
    ...slices,
    route("flapping", "/flapping", toService("flapping")),
  );
  const promised = ["/steady", "/flapping"].map((path) => ({ path, upstream: "steady" }));
  const load = startSteadyLoad(gateway.url, promised, CONNECTIONS);
  t.after(async () => void (await load.stop()));
  const churned = (at: number, version: number): Manifest =>
    route(`churn-${at}`, `/churn/${at}/${version}`, toBackend("steady"));
  const status = async (at: number, version: number): Promise<number> =>
    (await call(`${gateway.url}/churn/${at}/${version}`)).status;

  for (let at = 0; at < ROUTES; at++) {
    await gateway.set(churned(at, 0));
    await flap(gateway, slices, at);
    if (at % SAMPLE === 0) assert.equal(await status(at, 0), 200);
  }
  await load.turned();
  const versions = new Map<number, number>();
  for (let edit = 0; edit < EDITS; edit++) {
    const at = (edit * 7) % ROUTES;
    const version = (versions.get(at) ?? 0) + 1;
    versions.set(at, version);
    await gateway.set(churned(at, version));
    await flap(gateway, slices, edit);
    if (edit % SAMPLE === 0) assert.deepEqual([await status(at, version), await status(at, version - 1)], [200, 404]);
  }
  await load.turned();
  for (let at = 0; at < ROUTES; at++) {
    await gateway.remove(churned(at, 0));
    await flap(gateway, slices, at);
    if (at % SAMPLE === 0) assert.equal(await status(at, versions.get(at) ?? 0), 404);
  }
  await load.turned();
  const { answers } = await load.stop();
  assert.ok(answers >= (2 * ROUTES + EDITS) / SAMPLE, `only ${answers} requests`);
});

test("nothing in memory names what is gone, after ten rounds of creation, use and deletion", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const gateway = await startFedGateway(
    context,
    GATEWAY,
    backend("kept", echo.port),
    route("kept", "/kept", toBackend("kept")),
  );
  const comeAndGo = async (prefix: string): Promise<void> => {
    const all = Array.from({ length: 20 }, (_, at) => everything(`${prefix}-${at}`, echo.port));
    for (const objects of all) await gateway.set(...objects);
    for (let at = 0; at < 20; at += 5) {
      const { status } = await call(`${gateway.url}/${prefix}-${at}`, { headers: { "x-key": "k" } });
      assert.equal(status, 200);
    }
    for (const objects of all) await gateway.remove(...objects);
    echo.seen.length = 0;
  };
  for (let round = 0; round < 10; round++) await comeAndGo(`gone-${round}`);
  // What is on the stack, or was the last of its kind, is of this round.
  await comeAndGo("last");
  assert.deepEqual(await reachable(/\bgone-\d+-\d+/), []);
});

/** Both, one, both, the other one: a healthy endpoint is always there. */
function flap(gateway: FedGateway, slices: readonly Manifest[], turn: number): Promise<void> {
  const moving = slices[(turn >> 1) % slices.length] as Manifest; // the index is within the list
  return turn % 2 === 0 ? gateway.remove(moving) : gateway.set(moving);
}

/** Objects of each kind that changes often, all for one route. */
function everything(name: string, port: number): Manifest[] {
  const policy: Manifest = {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name }],
      traffic: {
        timeouts: { request: "60s" },
        authorization: { action: "Deny", policy: { matchExpressions: [`request.path == "/${name}/forbidden"`] } },
        rateLimit: { local: [{ requests: 1000, unit: "Hours", key: `"${name}" + request.headers["x-key"]` }] },
      },
    },
  };
  const backends = [toBackend(name), toService(name)];
  return [
    backend(name, port),
    service(name),
    slice(name, 0, port),
    policy,
    { ...route(name, `/${name}`, ...backends), metadata: { name, labels: { of: name } } },
  ];
}

/** Texts that something holds on to, after a full collection. */
async function reachable(pattern: RegExp): Promise<string[]> {
  const texts: string[] = [];
  for await (const chunk of getHeapSnapshot()) texts.push(String(chunk));
  const snapshot = JSON.parse(texts.join("")) as { readonly strings: readonly string[] }; // the format of V8
  return snapshot.strings.filter((text) => pattern.test(text) && !text.includes("\n"));
}

function backend(name: string, port: number): Manifest {
  const spec = { static: { host: "127.0.0.1", port } };
  return { apiVersion: "gwproxy.dev/v1alpha1", kind: "GwBackend", metadata: { name }, spec };
}

function toBackend(name: string): object {
  return { group: "gwproxy.dev", kind: "GwBackend", name };
}

function toService(name: string): object {
  return { kind: "Service", name, port: 80 };
}

function route(name: string, prefix: string, ...backendRefs: readonly object[]): Manifest {
  const rules = [{ name: "rule", matches: [{ path: { type: "PathPrefix", value: prefix } }], backendRefs }];
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name },
    spec: { parentRefs: [{ name: "gw" }], rules },
  };
}

function service(name: string): Manifest {
  return { apiVersion: "v1", kind: "Service", metadata: { name }, spec: { ports: [{ name: "http", port: 80 }] } };
}

function slice(owner: string, at: number, port: number): Manifest {
  const object = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${owner}-${at}`, labels: { "kubernetes.io/service-name": owner } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
    ports: [{ name: "http", port }],
  };
  return object;
}
