/** ListenerSets through real sockets: listeners come and go with them, and their routes and policies with the listeners. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, route, startGateway, staticBackend } from "../../support/gateway/gateway.ts";

const OPEN = GATEWAY.replace("listeners:", "allowedListeners: {namespaces: {from: Same}}\n  listeners:");

const SET = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more}
spec:
  parentRef: {name: gw}
  listeners: [{name: extra, port: 8081, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: extra}
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: more, sectionName: extra}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]}]
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: tagged}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: more}]
  traffic: {phase: PreRouting, transformation: {response: {set: [{name: x-set, value: "'more'"}]}}}
`;

test("a set opens a port of its own with its routes and policies, and the Gateway's listeners know nothing of them", async (t: TestContext) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  const echo = await startEcho(context);
  const base = documents(OPEN, staticBackend("web", echo.port), route("own", "web", "/own"));
  const gateway = await startGateway(context, documents(base, SET));
  const extra = await fetch(gateway.url(8081));
  assert.deepEqual([extra.status, extra.headers.get("x-set")], [200, "more"]);
  const own = await fetch(`${gateway.url(8080)}/own`);
  assert.deepEqual([own.status, own.headers.get("x-set")], [200, null]);
  assert.equal((await fetch(gateway.url(8080))).status, 404, "a route of the set is not on the Gateway's listener");
  assert.equal((await fetch(`${gateway.url(8081)}/own`)).headers.get("x-upstream"), "echo");
  await gateway.change(base);
  assert.deepEqual(
    gateway.proxy.listeners().map(({ port }) => port),
    [8080],
  );
  await gateway.change(documents(GATEWAY, staticBackend("web", echo.port), route("own", "web", "/own"), SET));
  assert.deepEqual(
    gateway.proxy.listeners().map(({ port }) => port),
    [8080],
    "a Gateway takes no sets unless it says so",
  );
});
