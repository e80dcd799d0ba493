/** `authorization` of a backend: decided once the destination is chosen, by the rules of all levels together. */
import assert from "node:assert/strict";
import { call } from "../../support/clients/http.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { prove } from "../../support/proofs/prove.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";

/** Flow YAML of a block. */
const rule = (action: string, ...expressions: readonly string[]): string =>
  `{action: ${action}, policy: {matchExpressions: [${expressions.map((text) => `'${text}'`).join(", ")}]}}`;

const PLACES = [
  [
    "GwBackend spec.policies.authorization",
    (port: number, block: string) => `${staticBackend("web", port).trimEnd()}\n  policies: {authorization: ${block}}\n`,
  ],
  [
    "GwPolicy spec.backend.authorization",
    (port: number, block: string) =>
      documents(staticBackend("web", port), routePolicy("who", "web", `  backend: {authorization: ${block}}`)),
  ],
] as const;

for (const [prefix, objects] of PLACES)
  prove(
    [`${prefix}.policy.matchExpressions[]`, `${prefix}.action`],
    `requests that the expressions do not let through get 403, and the chosen backend is in view (${prefix.split(" ")[0]})`,
    async (context) => {
      const echo = await startEcho(context);
      const block = rule("Deny", 'backend.name != "default/web"', 'request.headers["x-who"] == "bob"');
      const gateway = await startGateway(context, documents(GATEWAY, objects(echo.port, block), route("web", "web")));
      const as = async (headers: Readonly<Record<string, string>>): Promise<number> =>
        (await call(gateway.url(), { headers })).status;
      assert.equal(await as({ "x-who": "ann" }), 200);
      assert.equal(await as({ "x-who": "bob" }), 403);
      assert.equal(await as({}), 403, "an expression that fails counts against the request");
      assert.equal(echo.seen.length, 1);
    },
  );

prove([], "a narrow allow rule does not erase a broad denial, and every requirement holds", async (context) => {
  const echo = await startEcho(context);
  const inline = `${staticBackend("web", echo.port).trimEnd()}\n  policies: {authorization: ${rule("Allow", 'request.path == "/a"', 'request.path == "/b"')}}\n`;
  const broad = routePolicy("broad", "web", `  backend: {authorization: ${rule("Deny", 'request.path == "/b"')}}`);
  const needs = routePolicy(
    "needs",
    "web",
    `  backend: {authorization: ${rule("Require", '"x-id" in request.headers')}}`,
  );
  const gateway = await startGateway(context, documents(GATEWAY, inline, broad, needs, route("web", "web")));
  const at = async (path: string, headers = { "x-id": "1" } as Record<string, string>): Promise<number> =>
    (await call(gateway.url() + path, { headers })).status;
  assert.deepEqual([await at("/a"), await at("/b"), await at("/c"), await at("/a", {})], [200, 403, 403, 403]);
});

const PROVIDER = "GwBackend spec.ai.groups[].providers[].policies.authorization";
prove(
  [`${PROVIDER}.policy.matchExpressions[]`, `${PROVIDER}.action`],
  "a provider of a group is called only where its own rules and those of the backend let the request through",
  async (context) => {
    const echo = await startEcho(context);
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  policies: {authorization: ${rule("Deny", '"x-bad" in request.headers')}}
  ai:
    groups:
      - providers:
          - {name: one, llma: {model: m}, host: 127.0.0.1, port: ${echo.port}, policies: {authorization: ${rule("Require", '"x-id" in request.headers')}}}
`;
    // What another level allows does not make up for what a rule of the provider requires.
    const allows = routePolicy("allows", "web", `  backend: {authorization: ${rule("Allow", "true")}}`);
    const gateway = await startGateway(context, documents(GATEWAY, backend, route("web", "web"), allows));
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
    const as = async (headers: Readonly<Record<string, string>>): Promise<void> => {
      const json = { "content-type": "application/json", ...headers };
      const { status } = await call(`${gateway.url()}/v1/chat/completions`, { method: "POST", body, headers: json });
      statuses.push(status === 403);
    };
    const statuses: boolean[] = [];
    await as({});
    await as({ "x-id": "1", "x-bad": "1" });
    assert.equal(echo.seen.length, 0);
    await as({ "x-id": "1" });
    assert.deepEqual(statuses, [true, true, false]);
    assert.equal(echo.seen.length, 1);
  },
);

prove([], "policies on the Service behind a provider decide too, and their credential reaches it", async (context) => {
  const echo = await startEcho(context);
  const block = (members: string): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: on-service}
spec: {targetRefs: [{group: "", kind: Service, name: models}], backend: {${members}}}
`;
  const objects = documents(
    GATEWAY,
    `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  policies: {ai: {routes: {"*": Passthrough}}, auth: {key: of-the-provider}}
  ai: {provider: {custom: {backendRef: {group: "", kind: Service, name: models, port: 80}, formats: [{type: Completions}]}}}
`,
    service("models", echo.port),
    route("web", "web"),
    block(`authorization: ${rule("Deny", '"x-bad" in request.headers')}, auth: {key: of-the-service}`),
  );
  const gateway = await startGateway(context, objects);
  const allowed = await call(gateway.url());
  assert.equal(echoed(allowed.body).headers["authorization"], "Bearer of-the-service");
  assert.equal((await call(gateway.url(), { headers: { "x-bad": "1" } })).status, 403);
  assert.equal(echo.seen.length, 1);
});

/** Returns a Service with one endpoint. */
function service(name: string, port: number): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{name: http, port: ${port}}]
`;
}
