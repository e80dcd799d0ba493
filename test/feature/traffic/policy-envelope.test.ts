/** What a GwPolicy is attached to: by name, by labels, whole objects and their sections. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import {
  ALL,
  credentialsAt,
  gatewayRef,
  GROUP,
  marks,
  marksAt,
  policy,
  presents,
  routeRef,
  serve,
  TWO_LISTENERS,
  twoRules,
} from "../../support/proofs/policy-places.ts";
import { PROVIDER_KEY, startMockProvider } from "../../support/gateway/mock-provider.ts";
import { prove } from "../../support/proofs/prove.ts";

const REF = "GwPolicy spec.targetRefs[]";
const SELECTOR = "GwPolicy spec.targetSelectors[]";

prove(
  [`${REF}.group`, `${REF}.kind`, `${REF}.name`],
  "a policy on a Gateway holds on every listener and route of it",
  async (context) => {
    const gateway = await serve(context, policy("p", { refs: gatewayRef(), says: marks("gateway") }));
    assert.deepEqual(await marksAt(gateway, ["/a/one", "/b/two"]), ["gateway", "gateway"]);
    assert.deepEqual(await marksAt(gateway, ["/a/one"], 8081), ["gateway"]);
  },
);

prove(`${REF}.sectionName`, "a policy on a listener holds on that listener alone", async (context) => {
  const gateway = await serve(context, policy("p", { refs: gatewayRef("second"), says: marks("listener") }));
  assert.deepEqual(await marksAt(gateway, ["/a/one", "/b/one"]), ["", ""]);
  assert.deepEqual(await marksAt(gateway, ["/a/one", "/b/one"], 8081), ["listener", "listener"]);
});

prove(
  [`${REF}.group`, `${REF}.kind`, `${REF}.name`],
  "a policy on an HTTPRoute holds on that route alone",
  async (context) => {
    const gateway = await serve(context, policy("p", { refs: routeRef("a"), says: marks("route") }));
    assert.deepEqual(await marksAt(gateway, ALL), ["route", "route", "", ""]);
  },
);

prove(`${REF}.sectionName`, "a policy on a rule holds on that rule alone", async (context) => {
  const gateway = await serve(context, policy("p", { refs: routeRef("a", "two"), says: marks("rule") }));
  assert.deepEqual(await marksAt(gateway, ALL), ["", "rule", "", ""]);
});

prove(
  [`${REF}.group`, `${REF}.kind`, `${REF}.name`],
  "a policy on a GwBackend holds for every route to it",
  async (context) => {
    const refs = "{group: gwproxy.dev, kind: GwBackend, name: a}";
    const gateway = await serve(context, policy("p", { refs, says: presents("backend") }));
    assert.deepEqual(await credentialsAt(gateway, ALL), ["Bearer backend", "Bearer backend", "", ""]);
  },
);

prove(
  [`${REF}.group`, `${REF}.kind`, `${REF}.name`, `${REF}.sectionName`],
  "a policy on a port of a Service holds for that port alone",
  async (context) => {
    const { port } = await startEcho(context);
    const service = `
apiVersion: v1
kind: Service
metadata: {name: plain}
spec: {ports: [{name: one, port: 81}, {name: two, port: 82}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: plain, labels: {kubernetes.io/service-name: plain}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{name: one, port: ${port}}, {name: two, port: ${port}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: plain}
spec:
  parentRefs: [{name: gw}]
  rules:
    - {matches: [{path: {type: PathPrefix, value: /one}}], backendRefs: [{name: plain, port: 81}]}
    - {matches: [{path: {type: PathPrefix, value: /two}}], backendRefs: [{name: plain, port: 82}]}
`;
    const refs = '{group: "", kind: Service, name: plain, sectionName: "82"}';
    const gateway = await startGateway(
      context,
      documents(TWO_LISTENERS, service, policy("p", { refs, says: presents("port") })),
    );
    assert.deepEqual(await credentialsAt(gateway, ["/one", "/two"]), ["", "Bearer port"]);
  },
);

prove([], "several targets of one policy each get it", async (context) => {
  const gateway = await serve(
    context,
    policy("p", { refs: `${routeRef("a", "one")}, ${routeRef("b", "two")}`, says: marks("both") }),
  );
  assert.deepEqual(await marksAt(gateway, ALL), ["both", "", "", "both"]);
});

prove(
  `${REF}.sectionName`,
  "a policy on one provider of a GwBackend beats the one on the whole backend",
  async (context) => {
    const provider = await startMockProvider(context);
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai:
    groups: [{providers: [{name: main, llma: {}, host: 127.0.0.1, port: ${provider.port}}]}]
`;
    const target = (section: string) => `{group: gwproxy.dev, kind: GwBackend, name: ai${section}}`;
    const gateway = await startGateway(
      context,
      documents(
        TWO_LISTENERS,
        backend,
        twoRules("ai", "", "ai").replaceAll("/one", "/v1"),
        policy("a-whole", { refs: target(""), says: presents("of-the-backend") }),
        policy("b-section", { refs: target(", sectionName: main"), says: presents(PROVIDER_KEY) }),
      ),
    );
    const answer = await call(`${gateway.url()}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "hello" }] }),
    });
    assert.equal(answer.status, 200, answer.body);
  },
);

prove(
  [`${SELECTOR}.group`, `${SELECTOR}.kind`, `${SELECTOR}.matchLabels`],
  "a selector attaches to every object that carries the labels, and to one that gets them later",
  async (context) => {
    const parts = { selectors: `{${GROUP}, kind: HTTPRoute, matchLabels: {app: a}}`, says: marks("selected") };
    const { port } = await startEcho(context);
    const manifests = (label: string) =>
      documents(
        TWO_LISTENERS,
        staticBackend("a", port),
        twoRules("a", "/a", "a", "{app: a}"),
        twoRules("b", "/b", "a", label),
        policy("p", parts),
      );
    const gateway = await startGateway(context, manifests("{app: b}"));
    assert.deepEqual(await marksAt(gateway, ALL), ["selected", "selected", "", ""]);
    await gateway.change(manifests("{app: a}"));
    assert.deepEqual(await marksAt(gateway, ALL), ["selected", "selected", "selected", "selected"]);
  },
);

prove(`${SELECTOR}.sectionName`, "a selector may name a section of what it selects", async (context) => {
  const selectors = `{${GROUP}, kind: HTTPRoute, matchLabels: {app: b}, sectionName: one}`;
  const gateway = await serve(context, policy("p", { selectors, says: marks("selected") }));
  assert.deepEqual(await marksAt(gateway, ALL), ["", "", "selected", ""]);
});

prove(
  [`${SELECTOR}.group`, `${SELECTOR}.kind`],
  "Gateways and GwBackends are selected by their labels too",
  async (context) => {
    const edge = `{${GROUP}, kind: Gateway, matchLabels: {tier: edge}, sectionName: second}`;
    const backends = "{group: gwproxy.dev, kind: GwBackend, matchLabels: {app: b}}";
    const gateway = await serve(
      context,
      policy("p", { selectors: edge, says: marks("edge") }),
      policy("q", { selectors: backends, says: presents("selected") }),
    );
    assert.deepEqual(await marksAt(gateway, ["/a/one"]), [""]);
    assert.deepEqual(await marksAt(gateway, ["/a/one"], 8081), ["edge"]);
    assert.deepEqual(await credentialsAt(gateway, ["/a/one", "/b/one"]), ["", "Bearer selected"]);
  },
);

prove(
  [],
  "a policy that was refused closes what its kind and name can be read of, and nothing else",
  async (context) => {
    // The group belongs to another kind: admission refuses the policy and cannot know which of the two was meant.
    const mistaken = policy("p", { refs: "{group: gwproxy.dev, kind: HTTPRoute, name: a}", says: marks("never") });
    const gateway = await serve(context, mistaken);
    assert.equal(gateway.problems().length, 1);
    assert.equal((await call(`${gateway.url()}/a/one`)).status, 500);
    assert.equal((await call(`${gateway.url()}/b/one`)).status, 200);
  },
);

prove(
  [],
  "a policy whose target does not exist changes nothing, and holds as soon as the target is there",
  async (context) => {
    const { port } = await startEcho(context);
    const base = [TWO_LISTENERS, staticBackend("a", port), twoRules("a", "/a", "a")];
    const policies = [
      policy("p1", { refs: routeRef("b"), says: marks("route") }),
      policy("p2", { refs: routeRef("a", "three"), says: marks("section") }),
      policy("p3", { refs: gatewayRef("third"), says: marks("listener") }),
    ];
    const gateway = await startGateway(context, documents(...base, ...policies));
    assert.deepEqual(await marksAt(gateway, ["/a/one", "/b/one"]), ["", ""]);
    await gateway.change(documents(...base, ...policies, twoRules("b", "/b", "a")));
    assert.deepEqual(await marksAt(gateway, ["/a/one", "/b/one"]), ["", "route"]);
  },
);
