/** `tcp`, `http` and `tunnel` of one member of a group of LLM providers, through real sockets. */
import assert from "node:assert/strict";
import { startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy } from "../../support/servers/forward-proxy.ts";
import {
  documents,
  GATEWAY,
  route,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { startSocket } from "../../support/servers/grpc.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { gatewayRef, policy } from "../../support/proofs/policy-places.ts";
import { errorMessageOf } from "../../support/gateway/mock-provider.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { keepaliveOptions } from "../../support/servers/socket-options.ts";

const field = (name: string): string => `GwBackend spec.ai.groups[].providers[].policies.${name}`;
const FAR = "far.test";

interface Member {
  readonly host?: string;
  readonly port: number;
  /** Flow YAML of its policies. */
  readonly block: string;
}

/** The usual limits are longer than the three seconds that a request has here. */
function serve(context: ProofContext, { host = "127.0.0.1", port, block }: Member, ...more: readonly string[]) {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: models}
spec:
  ai: {groups: [{providers: [{name: one, llma: {}, host: ${host}, port: ${port}, policies: {${block}}}]}]}
`;
  const limit = policy("limit", { refs: gatewayRef(), says: "traffic: {timeouts: {request: 3s}}" });
  return startGateway(context, documents(GATEWAY, backend, route("models", "models"), limit, ...more));
}

function chat(gateway: TestGateway): Promise<Answer> {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
  return call(`${gateway.url()}/`, { method: "POST", headers: { "content-type": "application/json" }, body });
}

prove(
  [field("tcp.connectTimeout"), field("http.requestTimeout")],
  "a member has its own limits for the connection and for the answer",
  async (context) => {
    const silent = await startSocket(context);
    const tls = "tls: {insecureSkipVerify: All}";
    const slow = await serve(context, { port: silent, block: `tcp: {connectTimeout: 200ms}, ${tls}` });
    assert.equal(errorMessageOf(await chat(slow)), "upstream call timeout");
    const mute = await serve(context, { port: silent, block: "http: {requestTimeout: 200ms}" });
    assert.equal(errorMessageOf(await chat(mute)), "upstream call timeout");
  },
);

prove(
  [field("tcp.keepalive.time"), field("tcp.keepalive.interval"), field("tcp.keepalive.retries")],
  "connections to a member are probed as its block says",
  async (context) => {
    const { port } = await startEcho(context);
    const gateway = await serve(context, { port, block: "tcp: {keepalive: {time: 40s, interval: 6s, retries: 2}}" });
    assert.equal((await chat(gateway)).status, 200);
    assert.deepEqual(await keepaliveOptions(port), { seconds: 40, intervalSeconds: 6, probes: 2 });
  },
);

prove(field("http.version"), "a member is spoken to in the version that its block names", async (context) => {
  const { port } = await startHttp2Upstream(context, (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    stream.end("{}");
  });
  const gateway = await serve(context, { port, block: "http: {version: HTTP2}" });
  assert.equal((await chat(gateway)).status, 200);
});

prove(
  [
    ...["group", "kind", "name"].map((name) => field(`tunnel.backendRef.${name}`)),
    field("tunnel.url"),
    field("tunnel.mode"),
  ],
  "a member is reached through the proxy that its block names",
  async (context) => {
    const { port } = await startEcho(context);
    const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
    const ref = "{group: gwproxy.dev, kind: GwBackend, name: proxy}";
    const at = { host: FAR, port };
    const handed = await serve(
      context,
      { ...at, block: `tunnel: {backendRef: ${ref}}` },
      staticBackend("proxy", proxy.port),
    );
    const tunnelled = await serve(context, {
      ...at,
      block: `tunnel: {url: "http://127.0.0.1:${proxy.port}", mode: Connect}`,
    });
    assert.equal((await chat(handed)).status, 200);
    assert.equal((await chat(tunnelled)).status, 200);
    assert.deepEqual(proxy.asked, [`POST http://${FAR}:${port}/v1/chat/completions`, `CONNECT ${FAR}:${port}`]);
  },
);

prove(
  [field("tunnel.backendRef.namespace"), field("tunnel.backendRef.port")],
  "the proxy of a member may be the port of a Service in another namespace",
  async (context) => {
    const { port } = await startEcho(context);
    const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
    const service = `
apiVersion: v1
kind: Service
metadata: {name: proxies, namespace: egress}
spec: {ports: [{name: other, port: 8080}, {name: proxy, port: 3128}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: proxies-1, namespace: egress, labels: {kubernetes.io/service-name: proxies}}
addressType: IPv4
ports: [{name: other, port: 9}, {name: proxy, port: ${proxy.port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
    const block = "tunnel: {backendRef: {name: proxies, namespace: egress, port: 3128}}";
    const gateway = await serve(context, { host: FAR, port, block }, service);
    assert.equal((await chat(gateway)).status, 200);
    assert.equal(proxy.asked.length, 1);
  },
);
