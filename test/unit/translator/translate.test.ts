import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import { objectId, objectKey, type KubeObject } from "../../../src/api/object.ts";
import { byTypeAndKey } from "../../../src/ir/print.ts";
import type { ResourceUpdate } from "../../../src/ir/resource.ts";
import { computeStatus } from "../../../src/status/compute.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import type { Translator } from "../../../src/translator/translator.ts";
import { assertProperty } from "../../support/fixtures/seed.ts";

const GATEWAY_API = "gateway.networking.k8s.io/v1";
const OURS = "gwproxy.dev/v1alpha1";

interface TestObject extends KubeObject {
  readonly spec?: unknown;
}

function object(apiVersion: string, kind: string, name: string, rest: object = {}): TestObject {
  return { apiVersion, kind, metadata: { name, namespace: "default" }, ...rest };
}

function gateway(name: string, port: number): TestObject {
  const listeners = [{ name: "http", port, protocol: "HTTP" }];
  return object(GATEWAY_API, "Gateway", name, { spec: { gatewayClassName: "gwproxy", listeners } });
}

function route(name: string, parent: string, backendRef: object, path = "/"): TestObject {
  const rules = [{ matches: [{ path: { value: path } }], backendRefs: [backendRef] }];
  return object(GATEWAY_API, "HTTPRoute", name, { spec: { parentRefs: [{ name: parent }], rules } });
}

function service(name: string, port = 80): TestObject {
  return object("v1", "Service", name, { spec: { ports: [{ port }] } });
}

function slice(name: string, owner: string, address: string): TestObject {
  return {
    ...object("discovery.k8s.io/v1", "EndpointSlice", name, {
      addressType: "IPv4",
      ports: [{ port: 3000 }],
      endpoints: [{ addresses: [address] }],
    }),
    metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": owner } },
  };
}

function policy(name: string, kind: string, target: string, spec: object): TestObject {
  const group = kind === "GwBackend" ? "gwproxy.dev" : kind === "Service" ? "" : "gateway.networking.k8s.io";
  return object(OURS, "GwPolicy", name, { spec: { targetRefs: [{ group, kind, name: target }], ...spec } });
}

function secret(name: string, key: string): TestObject {
  return object("v1", "Secret", name, { stringData: { key, Authorization: key } });
}

function translator(): Translator {
  return createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
}

function set(to: Translator, ...objects: readonly TestObject[]) {
  return to.apply(objects.map((one) => ({ type: "set", object: one })));
}

function remove(to: Translator, one: TestObject) {
  return to.apply([{ type: "delete", id: objectId(one) }]);
}

function moved({ set: gained, removed }: ResourceUpdate): string[] {
  return [...gained.map(({ key }) => `+${key}`), ...removed.map(({ key }) => `-${key}`)].sort();
}

test("a change of one route among a thousand sends one resource and touches one status", () => {
  const live = translator();
  const routes = Array.from({ length: 1000 }, (_, at) => route(`r${at}`, "main", { name: "web", port: 80 }, `/${at}`));
  set(live, gateway("main", 8080), service("web"), slice("web-1", "web", "127.0.0.1"), ...routes);
  assert.equal(live.resources().length, 1004);

  const step = set(live, route("r500", "main", { name: "web", port: 80 }, "/changed"));
  assert.deepEqual(moved(step.update), ["+httproute/default/r500"]);
  assert.deepEqual([...step.byGateway.keys()], ["default/main"]);
  assert.deepEqual(step.touched, [], "the status of the route says what it said before");

  const broken = set(live, route("r500", "main", { name: "missing", port: 80 }, "/changed"));
  assert.deepEqual(moved(broken.update), ["+httproute/default/r500"]);
  assert.deepEqual(broken.touched.map(objectKey), ["gateway.networking.k8s.io/HTTPRoute/default/r500"]);
});

test("a policy that is edited touches the status of no other one, and one that wins that of its rivals alone", () => {
  const live = translator();
  const routes = Array.from({ length: 100 }, (_, at) => route(`r${at}`, "main", { name: "web", port: 80 }, `/${at}`));
  const timeouts = (name: string, target: string, request: string) =>
    policy(name, "HTTPRoute", target, { traffic: { timeouts: { request } } });
  const policies = routes.map((_, at) => timeouts(`p${at}`, `r${at}`, "1s"));
  const ofAll = policy("z", "Gateway", "main", { traffic: { timeouts: { request: "1s" } } });
  set(live, gateway("main", 8080), service("web"), ...routes, ...policies, ofAll);
  const touched = (...objects: readonly TestObject[]) =>
    set(live, ...objects)
      .touched.map(({ kind, name }) => `${kind}/${name}`)
      .sort();
  assert.deepEqual(touched(timeouts("p50", "r50", "2s")), []);
  assert.deepEqual(touched(timeouts("a", "r50", "3s")), ["GwPolicy/a", "GwPolicy/p50"]);
  const { touched: freed } = remove(live, timeouts("a", "r50", "3s"));
  assert.deepEqual(
    freed.map(({ name }) => name),
    ["p50"],
  );
  assert.deepEqual(touched(policy("p50", "HTTPRoute", "r50", { traffic: { csrf: {} } })), ["GwPolicy/z"]);
  assert.deepEqual(touched(timeouts("p50", "r50", "2s")), ["GwPolicy/z"], "all routes have their own again");
});

test("an object delivered again unchanged moves nothing", () => {
  const live = translator();
  const objects = [gateway("main", 80), service("web"), route("web", "main", { name: "web", port: 80 })];
  set(live, ...objects);
  const again = set(live, ...objects.map((one) => structuredClone(one)));
  assert.deepEqual(moved(again.update), []);
  assert.equal(again.byGateway.size, 0);
  assert.deepEqual(again.touched, []);
});

test("pods that come and go change the endpoints alone", () => {
  const live = translator();
  set(live, gateway("main", 80), service("web"), route("web", "main", { name: "web", port: 80 }));
  const step = set(live, slice("web-1", "web", "127.0.0.1"));
  assert.deepEqual(moved(step.update), ["+service/default/web:80"]);
  assert.equal(step.update.set[0]?.type, "Endpoints");
});

test("a Gateway hears only of what its routes reach", () => {
  const live = translator();
  const llm = object(OURS, "GwBackend", "llm", {
    spec: {
      ai: { provider: { custom: { backendRef: { name: "inner", port: 80 }, formats: [{ type: "Completions" }] } } },
    },
  });
  set(
    live,
    gateway("one", 81),
    gateway("two", 82),
    service("web"),
    service("inner"),
    service("unused"),
    llm,
    route("a", "one", { name: "web", port: 80 }),
    policy("p", "Service", "inner", { backend: { auth: { key: "k" } } }),
  );
  const keys = (name: string) => live.resourcesOf(name).map(({ type, key }) => `${type} ${key}`);
  assert.ok(keys("default/one").includes("Backend service/default/web:80"));
  assert.deepEqual(keys("default/two").sort(), ["Bind 82/default/two", "Listener default/two.http"]);

  const step = set(live, route("b", "two", { group: "gwproxy.dev", kind: "GwBackend", name: "llm" }));
  assert.deepEqual([...step.byGateway.keys()], ["default/two"]);
  assert.deepEqual(moved(step.byGateway.get("default/two") ?? { set: [], removed: [] }), [
    "+backend/default/llm",
    "+httproute/default/b",
    "+policy/default/p",
    "+service/default/inner:80",
    "+service/default/inner:80",
  ]);
  const shared = set(live, route("c", "two", { name: "web", port: 80 }));
  assert.deepEqual(moved(shared.update), ["+httproute/default/c"], "for one process the backend is there already");
  assert.equal(shared.byGateway.get("default/two")?.set.length, 3);

  const gone = remove(live, route("b", "two", {}));
  assert.deepEqual(moved(gone.update), [
    "-backend/default/llm",
    "-httproute/default/b",
    "-policy/default/p",
    "-service/default/inner:80",
    "-service/default/inner:80",
  ]);
});

test("a Secret that appears puts its keys in force without touching anything else", () => {
  const live = translator();
  const keys = policy("keys", "HTTPRoute", "web", {
    traffic: { apiKeyAuthentication: { secretRef: { name: "keys" } } },
  });
  set(live, gateway("main", 80), service("web"), route("web", "main", { name: "web", port: 80 }), keys);
  const step = set(live, secret("keys", "k"));
  assert.deepEqual(moved(step.update), ["+policy/default/keys"]);
  assert.deepEqual(step.touched.map(objectKey), ["gwproxy.dev/GwPolicy/default/keys"]);
});

test("a refused policy is replaced by a refusal in one step, and by itself again when it is mended", () => {
  const live = translator();
  const good = policy("p", "HTTPRoute", "web", { traffic: { timeouts: { request: "1s" } } });
  set(live, gateway("main", 80), service("web"), route("web", "main", { name: "web", port: 80 }), good);
  const unitOf = () => {
    const found = live.resources().find(({ key }) => key === "policy/default/p");
    return found?.type === "Policy" ? found.message.units[0]?.unit.case : undefined;
  };
  const refused = live.apply([{ type: "refused", id: objectId(good), object: good, reason: "unknown field" }]);
  assert.deepEqual(moved(refused.update), ["+policy/default/p"], "never a moment without the policy");
  assert.equal(unitOf(), "failClosed");
  set(live, good);
  assert.equal(unitOf(), "timeouts");
  remove(live, good);
  assert.equal(unitOf(), undefined);
});

test("a target of another group is never taken for ours, and a refused policy closes what its kind names", () => {
  const live = translator();
  const spec = {
    targetRefs: [{ group: "other.example", kind: "HTTPRoute", name: "web" }],
    traffic: { timeouts: { request: "1s" } },
  };
  const foreign = object(OURS, "GwPolicy", "p", { spec });
  set(live, gateway("main", 80), service("web"), route("web", "main", { name: "web", port: 80 }), foreign);
  const targets = () => {
    const found = live.resources().find(({ key }) => key === "policy/default/p");
    return found?.type === "Policy" ? found.message.targets.map(({ target }) => target.value) : [];
  };
  assert.deepEqual(targets(), []);
  live.apply([{ type: "refused", id: objectId(foreign), object: foreign, reason: "group" }]);
  assert.deepEqual(targets(), ["httproute/default/web"]);
});

const POOL: readonly TestObject[] = [
  gateway("one", 81),
  gateway("one", 83),
  gateway("two", 82),
  service("web"),
  service("web", 81),
  slice("web-1", "web", "127.0.0.1"),
  slice("web-1", "web", "127.0.0.2"),
  secret("keys", "a"),
  secret("keys", "b"),
  object(OURS, "GwBackend", "host", {
    spec: { static: { host: "h", port: 80 }, policies: { auth: { secretRef: { name: "keys" } } } },
  }),
  route("a", "one", { name: "web", port: 80 }),
  route("a", "two", { group: "gwproxy.dev", kind: "GwBackend", name: "host" }),
  route("b", "two", { name: "web", port: 80 }),
  policy("p", "HTTPRoute", "a", { traffic: { apiKeyAuthentication: { secretRef: { name: "keys" } } } }),
  policy("p", "Gateway", "two", { traffic: { timeouts: { request: "1s" } } }),
  policy("q", "Service", "web", { backend: { tls: {} } }),
];

test("any series of events ends in the state of a fresh translation, and the updates add up to it", () => {
  const event = fc.record({ at: fc.nat(POOL.length - 1), type: fc.constantFrom("set", "set", "delete", "refused") });
  assertProperty(
    fc.property(fc.array(fc.array(event, { maxLength: 4 }), { maxLength: 12 }), (batches) => {
      const live = translator();
      const last = new Map<string, Parameters<Translator["apply"]>[0][number]>();
      const replica = new Map<string, string>();
      for (const batch of batches) {
        const events = batch.map(({ at, type }) => toEvent(POOL[at] as TestObject, type)); // `at` stays inside the pool
        for (const one of events) {
          if (one.type === "document") continue;
          const id = one.type === "set" ? objectId(one.object) : one.id;
          if (one.type !== "refused" || id.kind === "GwPolicy") last.set(objectKey(id), one);
        }
        const { update } = live.apply(events);
        for (const { type, key } of update.removed)
          assert.ok(replica.delete(`${type} ${key}`), `${key} was never sent`);
        for (const { type, key, version } of update.set) replica.set(`${type} ${key}`, version);
      }
      const fresh = translator();
      fresh.apply([...last.values()]);
      assert.deepEqual(snapshot(live), snapshot(fresh));
      const held = live.resources().map(({ type, key, version }) => [`${type} ${key}`, version] as const);
      assert.deepEqual([...replica].sort(), [...held].sort());
    }),
    { numRuns: 200 },
  );
});

function toEvent(one: TestObject, type: string): Parameters<Translator["apply"]>[0][number] {
  if (type === "set") return { type: "set", object: one };
  if (type === "delete") return { type: "delete", id: objectId(one) };
  return { type: "refused", id: objectId(one), object: one, reason: "refused" };
}

function snapshot(of: Translator): unknown {
  const context = {
    controllerName: "gwproxy.dev/gwproxy",
    acknowledged: () => true,
    hasDataPlane: () => false,
    nackReason: () => undefined,
  };
  return {
    all: [...of.resources()].sort(byTypeAndKey),
    gateways: of.gateways().map((key) => [key, [...of.resourcesOf(key)].sort(byTypeAndKey)]),
    status: POOL.map((one) => of.statusInput(objectId(one))).map((facts) => facts && computeStatus(facts, context)),
  };
}
