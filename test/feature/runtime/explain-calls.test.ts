/**
 * `explain` about calls: the settings of the providers and targets that policies name in `sectionName`, and of request
 * mirrors, are those that the upstreams see.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../../support/clients/http.ts";
import { INITIALIZE, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { gatewayRef, policy, presents } from "../../support/proofs/policy-places.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { startEcho, type Echo } from "../../support/servers/echo.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

const WIDE = policy("wide", { refs: gatewayRef(), says: presents("for-all") });

function onBackend(name: string, backend: string, section = "", says: string = presents(`for-${name}`)): string {
  const part = section === "" ? "" : `, sectionName: ${section}`;
  return policy(name, { refs: `{group: gwproxy.dev, kind: GwBackend, name: ${backend}${part}}`, says });
}

/** An auth setting of a policy, as the explanation names it. */
function auth(level: string, name: string): { readonly level: string; readonly origin: string } {
  return { level, origin: `GwPolicy default/${name} spec.backend.auth` };
}

const FROM_WIDE = { policy: "auth", from: [auth("gateway", "wide")], lost: [] };

/** Returns the setting `auth` of a policy that is more specific than the one on the Gateway. */
function wonBy(winner: { readonly level: string; readonly origin: string }): unknown {
  return { policy: "auth", from: [winner], lost: [{ ...auth("gateway", "wide"), to: winner, reason: "moreSpecific" }] };
}

async function seenBy({ seen }: Echo, url: string, init: Parameters<typeof call>[1] = {}): Promise<string | undefined> {
  seen.length = 0;
  await call(url, init);
  return seen[0]?.headers["authorization"];
}

test("a provider that policies name is explained apart, with its own settings as the strongest", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const member = (name: string, own: string): string =>
    `{name: ${name}, llma: {}, host: 127.0.0.1, port: ${echo.port}${own}}`;
  const groups = (own: string): string => `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: {groups: [{providers: [${member("main", own)}]}, {providers: [${member("spare", "")}]}]}}
`;
  const manifests = (own: string, ...more: string[]): string =>
    documents(GATEWAY, route("r", "ai"), groups(own), WIDE, ...more);
  const onMain = onBackend("main", "ai", "main");
  const gateway = await startGateway(context, manifests("", onMain));
  const explain = async (): Promise<unknown> => (await gateway.proxy.explain("default/r"))[0]?.rules[0]?.backends;
  const ask = (): Promise<string | undefined> =>
    seenBy(echo, `${gateway.url()}/v1/chat/completions`, { method: "POST", body: `{"model":"m","messages":[]}` });
  const explained = (sections: unknown): unknown => [
    { backend: "backend/default/ai", weight: 1, policies: [FROM_WIDE], sections },
  ];
  const section = auth("section", "main");
  assert.deepEqual(await explain(), explained([{ section: "main", policies: [wonBy(section)] }]));
  assert.equal(await ask(), "Bearer for-main");

  await gateway.change(manifests(", policies: {auth: {key: own}}", onMain));
  const own = { level: "own", origin: "GwBackend default/ai provider main policies.auth" };
  const lost = [
    { ...auth("gateway", "wide"), to: section, reason: "moreSpecific" },
    { ...section, to: own, reason: "moreSpecific" },
  ];
  const won = { policy: "auth", from: [own], lost };
  assert.deepEqual(await explain(), explained([{ section: "main", policies: [won] }]));
  assert.equal(await ask(), "Bearer own");

  await gateway.change(
    manifests(", policies: {auth: {key: own}}", onBackend("bad", "ai", "main", "backend: {auth: {key: 5}}")),
  );
  assert.deepEqual(
    await explain(),
    explained([{ section: "main", refuses: "GwPolicy default/bad is invalid", policies: [wonBy(own)] }]),
  );
  assert.equal(await ask(), undefined);
});

test("a target of an MCP backend that a policy names is explained apart, and the others are as the backend", async (t) => {
  const context = contextOf(t);
  const [one, two] = [await startMcpServer(context, {}), await startMcpServer(context, {})];
  const targets = [one, two].map(({ port }, at) => `{name: t${at}, static: {host: 127.0.0.1, port: ${port}}}`);
  const tools = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [${targets.join(", ")}]}}
`;
  const gateway = await startGateway(
    context,
    documents(GATEWAY, route("r", "tools"), tools, WIDE, onBackend("first", "tools", "t0")),
  );
  const [explained] = await gateway.proxy.explain("default/r");
  assert.deepEqual(explained?.rules[0]?.backends, [
    {
      backend: "backend/default/tools",
      weight: 1,
      policies: [FROM_WIDE],
      sections: [{ section: "t0", policies: [wonBy(auth("section", "first"))] }],
    },
  ]);
  await post(gateway.url(), INITIALIZE);
  const shown = [one, two].map(({ calls }) => calls[0]?.headers.authorization);
  assert.deepEqual(shown, ["Bearer for-first", "Bearer for-all"]);
});

const MIRROR = (name: string, more = ""): string =>
  `{type: RequestMirror, requestMirror: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}${more}}}`;

test("request mirrors are explained with the settings of their calls, where they have some", async (t) => {
  const context = contextOf(t);
  const [main, shadow, audit] = [await startEcho(context), await startEcho(context), await startEcho(context)];
  const web = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec:
  parentRefs: [{name: gw}]
  rules:
    - filters: [${MIRROR("shadow")}, ${MIRROR("audit", ", fraction: {numerator: 1, denominator: 4}")}]
      backendRefs:
        - {group: gwproxy.dev, kind: GwBackend, name: main, filters: [${MIRROR("shadow")}]}
`;
  const backends = [staticBackend("main", main.port), staticBackend("shadow", shadow.port)];
  const fixed = documents(GATEWAY, web, ...backends, staticBackend("audit", audit.port));
  const gateway = await startGateway(context, documents(fixed, WIDE, onBackend("copies", "shadow")));
  const [explained] = await gateway.proxy.explain("default/r");
  const onShadow = { backend: "backend/default/shadow", share: 1, policies: [wonBy(auth("backend", "copies"))] };
  assert.deepEqual(explained?.rules[0]?.backends, [
    { backend: "backend/default/main", weight: 1, policies: [FROM_WIDE] },
  ]);
  assert.deepEqual(explained.rules[0].mirrors, [
    onShadow,
    { backend: "backend/default/audit", share: 0.25, policies: [FROM_WIDE] },
    { ...onShadow, of: "backend/default/main" },
  ]);
  assert.equal(await seenBy(main, gateway.url()), "Bearer for-all");
  // Copies travel beside the request.
  while (shadow.seen.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    shadow.seen.map(({ headers }) => headers["authorization"]),
    ["Bearer for-copies", "Bearer for-copies"],
  );
  await gateway.change(fixed);
  const [plain] = await gateway.proxy.explain("default/r");
  assert.deepEqual(plain?.rules, [{ rule: "0", policies: [] }]);
});
