/** Which listeners a route belongs to, and which of several equal routes serves: Gateway API, through real sockets. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, gatewayOf, startGateway, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";

interface RouteParts {
  readonly parents?: string;
  readonly namespace?: string;
  /** creationTimestamp. */
  readonly created?: string;
}

/** Says its name in a header of the answer. */
function route(name: string, { parents = "{name: gw}", namespace = "default", created }: RouteParts): string {
  const date = created === undefined ? "" : `, creationTimestamp: "${created}"`;
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}, namespace: ${namespace}${date}}
spec:
  parentRefs: [${parents}]
  rules:
    - filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-route, value: ${name}}]}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]
`;
}

async function serve(t: TestContext, gateway: string): Promise<{ set(...objects: string[]): Promise<TestGateway> }> {
  const echo = await startEcho(contextOf(t));
  const backends = ["default", "team-a", "team-b"].map((namespace) =>
    staticBackend("web", echo.port).replace("{name: web}", `{name: web, namespace: ${namespace}}`),
  );
  const started = await startGateway(contextOf(t), documents(gateway, ...backends));
  return {
    async set(...objects) {
      await started.change(documents(gateway, ...backends, ...objects));
      assert.deepEqual(started.problems(), []);
      return started;
    },
  };
}

/** Name of the route that serves; undefined: none. */
async function servedBy(gateway: TestGateway, port = 8080, host = "a.test"): Promise<unknown> {
  const { status, headers } = await call(gateway.url(port), { headers: { host } });
  assert.ok(status === 200 || status === 404, `${status}`);
  return headers["x-route"];
}

const LISTENERS = [
  ["a", 8080, "a.test"],
  ["b", 8080, "b.test"],
  ["c", 8081, "c.test"],
] as const;

/** Fields of each parentRef beside the name, and the listeners that serve the route. */
const PARENTS: readonly (readonly [refs: readonly string[], listeners: string])[] = [
  [[""], "abc"],
  [["sectionName: a"], "a"],
  [["sectionName: b"], "b"],
  [["port: 8080"], "ab"],
  [["port: 8081"], "c"],
  [["sectionName: a", "sectionName: b"], "ab"],
  [["sectionName: b", "sectionName: a"], "ab"],
  [["sectionName: a", "sectionName: c"], "ac"],
  [["sectionName: a", "sectionName: b", "sectionName: c"], "abc"],
  [["sectionName: a, port: 8080"], "a"],
  [["sectionName: a, port: 8080", "sectionName: c, port: 8081"], "ac"],
  [["sectionName: a, port: 8081"], ""],
  [["sectionName: c, port: 8080"], ""],
  [["sectionName: a, port: 8081", "sectionName: b, port: 8080"], "b"],
  [["sectionName: b, port: 8080", "sectionName: a, port: 8081"], "b"],
  [["sectionName: none"], ""],
  [["port: 9999"], ""],
  [["sectionName: none", "sectionName: c"], "c"],
  [["sectionName: c", "sectionName: none"], "c"],
];

test("several parentRefs to one Gateway add up, each with its own section and port", async (t) => {
  const listeners = LISTENERS.map(
    ([name, port, hostname]) => `{name: ${name}, port: ${port}, protocol: HTTP, hostname: ${hostname}}`,
  );
  const { set } = await serve(t, gatewayOf(listeners));
  for (const [refs, expected] of PARENTS) {
    const parents = refs.map((more) => `{name: gw${more === "" ? "" : `, ${more}`}}`).join(", ");
    const gateway = await set(route("r", { parents }));
    let served = "";
    for (const [name, port, host] of LISTENERS) if ((await servedBy(gateway, port, host)) === "r") served += name;
    assert.equal(served, expected, parents);
  }
});

test("of equal matches the older route serves, then the first by namespace and name, whatever came first", async (t) => {
  const { set } = await serve(
    t,
    gatewayOf(["{name: a, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}"]),
  );
  const at = (year: number): string => `${year}-01-01T00:00:00Z`;
  const zebra = route("zebra", { created: at(2020) });
  const apple = route("apple", { created: at(2021) });
  const mango = route("mango", { created: at(2021) });
  for (const objects of [
    [zebra, apple, mango],
    [mango, apple, zebra],
    [apple, zebra],
  ])
    assert.equal(await servedBy(await set(...objects)), "zebra");
  for (const objects of [
    [apple, mango],
    [mango, apple],
  ])
    assert.equal(await servedBy(await set(...objects)), "apple");
  const second = route("second", { namespace: "team-b", created: at(2021), parents: "{name: gw, namespace: default}" });
  assert.equal(await servedBy(await set(second, mango)), "mango", "default comes before team-b");
  const first = second.replace("namespace: team-b", "namespace: team-a").replaceAll("second", "older");
  assert.equal(await servedBy(await set(second, first)), "older");
});

test("a listener takes the routes of a namespace that it names by its own name, labels or not", async (t) => {
  const listeners = [
    "{name: a, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: team-a}}}}}",
    `{name: b, port: 8081, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [team-a]}]}}}}`,
  ];
  const { set } = await serve(t, gatewayOf(listeners));
  const parents = "{name: gw, namespace: default}";
  const routes = ["a", "b"].map((team) => route(`of-${team}`, { namespace: `team-${team}`, parents }));
  const namespaces = [
    "{}",
    "{tier: edge}",
    "{kubernetes.io/metadata.name: team-a}",
    "{kubernetes.io/metadata.name: team-b}",
  ].map((labels) =>
    ["team-a", "team-b"].map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, labels: ${labels}}`),
  );
  for (const objects of [[], ...namespaces]) {
    const gateway = await set(...routes, ...objects);
    assert.equal(await servedBy(gateway, 8080), "of-a", objects[0]);
    assert.equal(await servedBy(gateway, 8081), "of-b", objects[0]);
  }
});
