/** traffic.jwtAuthentication with keys that are fetched from their issuer, through real sockets. */
import assert from "node:assert/strict";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  pemObject,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { startKeyServer } from "../../support/servers/key-server.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { createIssuer, keySet, type Issuer } from "../../support/fixtures/tokens.ts";

const REMOTE = "GwPolicy spec.traffic.jwtAuthentication.providers[].jwks.remote";
const NAME = "https://issuer.test";
const PATH = "/realms/one/certs";

function tokenPolicy(remote: string): string {
  const providers = `[{issuer: "${NAME}", jwks: {remote: ${remote}}}]`;
  return routePolicy("tokens", "web", `  traffic: {jwtAuthentication: {providers: ${providers}}}`);
}

async function guard(context: ProofContext, remote: string, ...more: readonly string[]): Promise<TestGateway> {
  const echo = await startEcho(context);
  const objects = [GATEWAY, staticBackend("web", echo.port), route("web", "web"), tokenPolicy(remote), ...more];
  return startGateway(context, documents(...objects));
}

async function passes(gateway: TestGateway, issuer: Issuer): Promise<boolean> {
  const headers = { authorization: `Bearer ${await issuer.token()}` };
  const answer = await call(gateway.url(), { headers });
  assert.ok(answer.status === 200 || answer.status === 401, String(answer.status));
  if (answer.status === 200) assert.equal(echoed(answer.body).headers["authorization"], undefined);
  return answer.status === 200;
}

prove(`${REMOTE}.url`, "keys are fetched from a URL, once for the whole process", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) });
  const remote = `{url: "http://127.0.0.1:${server.port}${PATH}"}`;
  const gateway = await guard(context, remote, tokenPolicy(remote).replace("{name: tokens}", "{name: same}"));
  await gateway.until(() => passes(gateway, issuer));
  assert.equal(await passes(gateway, await createIssuer(NAME)), false);
  assert.deepEqual(server.asked, [PATH]);
});

prove(
  [`${REMOTE}.backendRef.group`, `${REMOTE}.backendRef.kind`, `${REMOTE}.backendRef.name`, `${REMOTE}.jwksPath`],
  "keys are fetched from a path of a GwBackend",
  async (context) => {
    const issuer = await createIssuer(NAME);
    const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) });
    const remote = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: keys}, jwksPath: ${PATH}}`;
    const gateway = await guard(context, remote, staticBackend("keys", server.port));
    await gateway.until(() => passes(gateway, issuer));
    assert.deepEqual(server.asked, [PATH]);
  },
);

prove(`${REMOTE}.backendRef.namespace`, "the GwBackend may be in another namespace", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) });
  const remote = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: keys, namespace: idp}, jwksPath: ${PATH}}`;
  const elsewhere = staticBackend("keys", server.port).replace("{name: keys}", "{name: keys, namespace: idp}");
  const gateway = await guard(context, remote, elsewhere);
  await gateway.until(() => passes(gateway, issuer));
});

prove(`${REMOTE}.backendRef.port`, "keys are fetched from a ready endpoint of a Service", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) });
  const service = `
apiVersion: v1
kind: Service
metadata: {name: keys}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: keys-1, labels: {kubernetes.io/service-name: keys}}
addressType: IPv4
ports: [{name: http, port: ${server.port}}]
endpoints: [{addresses: [127.0.0.1]}]
`;
  const gateway = await guard(context, `{backendRef: {name: keys, port: 80}, jwksPath: ${PATH}}`, service);
  await gateway.until(() => passes(gateway, issuer));
});

prove(
  [`${REMOTE}.backendRef.name`, "GwPolicy spec.backend.tls.caCertificateRefs[].name"],
  "TLS goes by the backend's own settings, and by a policy on the backend",
  async (context) => {
    const issuer = await createIssuer(NAME);
    const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) }, ["keys.test"]);
    const authority = `
apiVersion: v1
kind: ConfigMap
metadata: {name: authority}
data:
  ca.crt: |
${server.authority.replaceAll(/^/gm, "    ")}
`;
    const remote = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: keys}, jwksPath: ${PATH}}`;
    const attached = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: secure}
spec:
  targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: keys}]
  backend: {tls: {sni: keys.test, caCertificateRefs: [{name: authority}]}}
`;
    const gateway = await guard(context, remote, staticBackend("keys", server.port), authority, attached);
    await gateway.until(() => passes(gateway, issuer));
  },
);

prove([], "a BackendTLSPolicy holds for the port of a Service, and is beaten by a GwPolicy", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) }, ["keys.test"]);
  const service = `
apiVersion: v1
kind: Service
metadata: {name: keys}
spec: {ports: [{name: https, port: 443}, {name: other, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: keys-1, labels: {kubernetes.io/service-name: keys}}
addressType: IPv4
ports: [{name: https, port: ${server.port}}, {name: other, port: 9}]
endpoints: [{addresses: [127.0.0.1]}]
`;
  const tlsPolicy = (name: string, section: string, hostname: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: ${name}}
spec:
  targetRefs: [{group: "", kind: Service, name: keys${section}}]
  validation: {hostname: ${hostname}, caCertificateRefs: [{group: "", kind: ConfigMap, name: authority}]}
`;
  const objects = [
    pemObject("ConfigMap", "authority", { "ca.crt": server.authority }),
    service,
    tlsPolicy("whole", "", "elsewhere.test"),
    tlsPolicy("port", ", sectionName: https", "keys.test"),
  ];
  const remote = `{backendRef: {name: keys, port: 443}, jwksPath: ${PATH}}`;
  const gateway = await guard(context, remote, ...objects);
  await gateway.until(() => passes(gateway, issuer));
  const stronger = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: stronger}
spec:
  targetRefs: [{group: "", kind: Service, name: keys}]
  backend: {tls: {}}
`;
  const strict = await guard(context, remote, ...objects, stronger);
  await strict.until(() => Promise.resolve(/certificate/.test(strict.translator.diagnostics()[0]?.message ?? "")));
  assert.equal(await passes(strict, issuer), false);
});

prove([], "keys are not fetched as nobody where the server is meant to see a workload", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) }, ["127.0.0.1"]);
  const keys = `${staticBackend("keys", server.port).trimEnd()}\n  policies: {tls: {certificateSource: SPIFFE}}\n`;
  const remote = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: keys}, jwksPath: ${PATH}}`;
  const gateway = await guard(context, remote, keys);
  const told = (): string => gateway.translator.diagnostics()[0]?.message ?? "";
  await gateway.until(() => Promise.resolve(/without a workload identity/.test(told())));
  assert.equal(await passes(gateway, issuer), false);
});

prove([], "keys are not fetched past a proxy that is meant to stand between", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, body: keySet(issuer.jwk) });
  const remote = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: keys}, jwksPath: ${PATH}}`;
  const tunnel = "tunnel: {url: 'http://127.0.0.1:9'}";
  const inline = `${staticBackend("keys", server.port).trimEnd()}\n  policies: {${tunnel}}\n`;
  const attached = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: through}
spec:
  targetRefs: [{group: gwproxy.dev, kind: GwBackend, name: keys}]
  backend: {${tunnel}}
`;
  for (const objects of [[inline], [staticBackend("keys", server.port), attached]]) {
    const gateway = await guard(context, remote, ...objects);
    assert.equal(await passes(gateway, issuer), false);
    assert.match(gateway.translator.diagnostics()[0]?.message ?? "", /not fetched through a tunnel/);
  }
  assert.deepEqual(server.asked, []);
});

prove(
  `${REMOTE}.cacheDuration`,
  "keys are fetched again when they are too old: a new one passes, one that is gone does not, even with a seen token",
  async (context) => {
    const [first, second] = [await createIssuer(NAME), await createIssuer(NAME, { kid: "key-2" })];
    const server = await startKeyServer(context, { path: PATH, body: keySet(first.jwk) });
    const remote = `{url: "http://127.0.0.1:${server.port}${PATH}", cacheDuration: 1s}`;
    const gateway = await guard(context, remote);
    await gateway.until(() => passes(gateway, first));
    const seen = { headers: { authorization: `Bearer ${await first.token()}` } };
    assert.equal((await call(gateway.url(), seen)).status, 200);
    assert.equal(await passes(gateway, second), false);
    server.answer = { path: PATH, body: keySet(second.jwk, first.jwk) };
    await gateway.until(() => passes(gateway, second));
    assert.equal((await call(gateway.url(), seen)).status, 200);
    server.answer = { path: PATH, body: keySet(second.jwk) };
    await gateway.until(async () => (await call(gateway.url(), seen)).status === 401);
    assert.equal(await passes(gateway, second), true);
  },
);

prove([], "until the keys are there every token is refused, status says why, and a retry mends it", async (context) => {
  const issuer = await createIssuer(NAME);
  const server = await startKeyServer(context, { path: PATH, status: 503, body: "" });
  const gateway = await guard(context, `{url: "http://127.0.0.1:${server.port}${PATH}"}`);
  assert.equal(await passes(gateway, issuer), false);
  const problem = () => gateway.translator.diagnostics()[0];
  await gateway.until(async () => problem()?.message.includes("answered 503") ?? false);
  assert.equal(problem()?.path, "spec.traffic.jwtAuthentication.providers[0].jwks.remote");
  server.answer = { path: PATH, body: keySet(issuer.jwk) };
  await gateway.until(() => passes(gateway, issuer));
  assert.equal(problem(), undefined);
});

prove([], "a reference that leads nowhere lets nobody in", async (context) => {
  const issuer = await createIssuer(NAME);
  const cases = [
    [
      "{backendRef: {group: gwproxy.dev, kind: GwBackend, name: missing}, jwksPath: /k}",
      /GwBackend default\/missing not found/,
    ],
    ["{backendRef: {name: missing, port: 80}, jwksPath: /k}", /Service default\/missing not found/],
  ] as const;
  for (const [remote, message] of cases) {
    const gateway = await guard(context, remote);
    assert.equal(await passes(gateway, issuer), false);
    assert.match(gateway.translator.diagnostics()[0]?.message ?? "", message);
  }
});
