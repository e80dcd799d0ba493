/** BackendTLSPolicy through real handshakes: whom the gateway believes, under which name, and who wins. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { documents, GATEWAY, pemObject, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import {
  createSelfSigned,
  startTlsUpstream,
  type Handshake,
  type TlsUpstream,
} from "../../support/servers/tls-upstream.ts";

const ROUTE = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{name: web, port: 443}]}]
`;

function service(port: number): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: https, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: https, port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}

function tlsPolicy(validation: string, name = "tls", section = ""): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: ${name}}
spec:
  targetRefs: [{group: "", kind: Service, name: web${section}}]
  validation: {${validation}}
`;
}

const CA = "caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]";

interface Setup {
  readonly gateway: TestGateway;
  /** The answer with this policy in force. */
  with(...policies: string[]): Promise<Response>;
}

async function setUp(t: TestContext): Promise<Setup> {
  const context = { after: (clean: () => void) => t.after(clean) };
  const upstream: TlsUpstream = await startTlsUpstream(context, ["up.test", "*.wild.test"]);
  const base = [GATEWAY, service(upstream.port), ROUTE, pemObject("ConfigMap", "ca", { "ca.crt": upstream.authority })];
  const gateway = await startGateway(context, documents(...base));
  return {
    gateway,
    async with(...policies) {
      await gateway.change(documents(...base, ...policies));
      return fetch(gateway.url());
    },
  };
}

test("a policy names the host of the handshake and the authority to believe; others are refused", async (t) => {
  const setup = await setUp(t);
  assert.notEqual((await setup.with()).status, 200, "plain text to a port that speaks TLS");
  const trusted = await setup.with(tlsPolicy(`hostname: up.test, ${CA}`));
  assert.equal(trusted.status, 200);
  assert.equal(((await trusted.json()) as Handshake).serverName, "up.test");
  assert.equal((await setup.with(tlsPolicy(`hostname: other.test, ${CA}`))).status, 503, "another name");
  assert.equal((await setup.with(tlsPolicy("hostname: up.test, wellKnownCACertificates: System"))).status, 503);
  const missing = "caCertificateRefs: [{group: '', kind: ConfigMap, name: missing}]";
  assert.equal((await setup.with(tlsPolicy(`hostname: up.test, ${missing}`))).status, 503, "nothing is trusted");
});

test("with subject names the host is only sent, and one of the names must be in the certificate", async (t) => {
  const setup = await setUp(t);
  const names = (name: string): string => `subjectAltNames: [{type: Hostname, hostname: ${name}}]`;
  const answer = await setup.with(tlsPolicy(`hostname: sent.test, ${CA}, ${names("up.test")}`));
  assert.equal(((await answer.json()) as Handshake).serverName, "sent.test");
  assert.equal((await setup.with(tlsPolicy(`hostname: up.test, ${CA}, ${names("else.test")}`))).status, 503);
  const uri = "subjectAltNames: [{type: URI, uri: 'spiffe://example.com/web'}]";
  assert.equal((await setup.with(tlsPolicy(`hostname: up.test, ${CA}, ${uri}`))).status, 503);
});

test("a policy of a port beats one of the Service, and a GwPolicy beats both", async (t) => {
  const setup = await setUp(t);
  const wrong = tlsPolicy(`hostname: wrong.test, ${CA}`, "service");
  const right = tlsPolicy(`hostname: up.test, ${CA}`, "port", ", sectionName: https");
  assert.equal((await setup.with(wrong)).status, 503);
  assert.equal((await setup.with(wrong, right)).status, 200);
  const own = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: own}
spec:
  targetRefs: [{group: "", kind: Service, name: web}]
  backend: {tls: {sni: any.wild.test, caCertificateRefs: [{name: ca}]}}
`;
  const answer = await setup.with(wrong, right, own);
  assert.equal(((await answer.json()) as Handshake).serverName, "any.wild.test");
});

test("a Gateway shows its client certificate to backends over TLS, and says when it cannot", async (t) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  const client = createSelfSigned("the gateway");
  const demands = { requestCert: true, rejectUnauthorized: true, ca: client.certificate };
  const upstream = await startTlsUpstream(context, ["up.test"], demands);
  const shown = GATEWAY.replace("listeners:", "tls: {backend: {clientCertificateRef: {name: client}}}\n  listeners:");
  const rest = [
    service(upstream.port),
    ROUTE,
    pemObject("ConfigMap", "ca", { "ca.crt": upstream.authority }),
    tlsPolicy(`hostname: up.test, ${CA}`),
  ];
  const secret = pemObject("Secret", "client", { "tls.crt": client.certificate, "tls.key": client.key });
  const gateway = await startGateway(context, documents(shown, secret, ...rest));
  const answer = await fetch(gateway.url());
  assert.equal(((await answer.json()) as Handshake).client, "the gateway");
  await gateway.change(documents(shown, ...rest));
  assert.equal((await fetch(gateway.url())).status, 503);
  const messages = gateway.translator.diagnostics().map(({ path, message }) => `${path}: ${message}`);
  assert.deepEqual(messages, ["spec.tls.backend.clientCertificateRef: Secret default/client not found"]);
  await gateway.change(documents(GATEWAY, secret, ...rest));
  assert.equal((await fetch(gateway.url())).status, 503, "nothing is shown that was not asked for");
});
