/** `tcp`, `http` and `tunnel` of one member of a backend, an LLM provider or an MCP target, through real sockets. */
import assert from "node:assert/strict";
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
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { gatewayRef, policy } from "../../support/proofs/policy-places.ts";
import { MEMBER_PLACES, type Member, type MemberPlace } from "../../support/proofs/member-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { keepaliveOptions } from "../../support/servers/socket-options.ts";

const FAR = "far.test";

/** The usual limits are longer than the three seconds that a request has here. */
function serve(context: ProofContext, place: MemberPlace, member: Member, ...more: readonly string[]) {
  const limit = policy("limit", { refs: gatewayRef(), says: "traffic: {timeouts: {request: 3s}}" });
  const objects = [place.backend("own", member), route("own", "own")];
  return startGateway(context, documents(GATEWAY, ...objects, limit, ...more));
}

for (const place of MEMBER_PLACES) {
  const of = `(${place.kind})`;
  const ask = (gateway: TestGateway) => place.ask(gateway.url());

  prove(
    [place.field("tcp.connectTimeout"), place.field("http.requestTimeout")],
    `a member has its own limits for the connection and for the answer ${of}`,
    async (context) => {
      const [connection, answer] = place.late;
      const silent = await startSocket(context);
      const tls = "tls: {insecureSkipVerify: All}";
      const slow = await serve(context, place, { port: silent, block: `tcp: {connectTimeout: 200ms}, ${tls}` });
      assert.ok((await ask(slow)).body.includes(connection));
      const mute = await serve(context, place, { port: silent, block: "http: {requestTimeout: 200ms}" });
      assert.ok((await ask(mute)).body.includes(answer));
    },
  );

  prove(
    [place.field("tcp.keepalive.time"), place.field("tcp.keepalive.interval"), place.field("tcp.keepalive.retries")],
    `connections to a member are probed as its block says ${of}`,
    async (context) => {
      const { port } = await place.start(context);
      const gateway = await serve(context, place, {
        port,
        block: "tcp: {keepalive: {time: 40s, interval: 6s, retries: 2}}",
      });
      assert.equal((await ask(gateway)).status, 200);
      assert.deepEqual(await keepaliveOptions(port), { seconds: 40, intervalSeconds: 6, probes: 2 });
    },
  );

  prove(
    place.field("http.version"),
    `a member is spoken to in the version that its block names ${of}`,
    async (context) => {
      const { port } = await startHttp2Upstream(context, (stream) => {
        stream.respond({ ":status": 200, "content-type": "application/json" });
        stream.end(place.answer);
      });
      const gateway = await serve(context, place, { port, block: "http: {version: HTTP2}" });
      assert.equal((await ask(gateway)).status, 200);
    },
  );

  prove(
    [
      ...["group", "kind", "name"].map((name) => place.field(`tunnel.backendRef.${name}`)),
      place.field("tunnel.url"),
      place.field("tunnel.mode"),
    ],
    `a member is reached through the proxy that its block names ${of}`,
    async (context) => {
      const { port } = await place.start(context);
      const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
      const ref = "{group: gwproxy.dev, kind: GwBackend, name: proxy}";
      const at = { host: FAR, port };
      const handed = await serve(
        context,
        place,
        { ...at, block: `tunnel: {backendRef: ${ref}}` },
        staticBackend("proxy", proxy.port),
      );
      const tunnelled = await serve(context, place, {
        ...at,
        block: `tunnel: {url: "http://127.0.0.1:${proxy.port}", mode: Connect}`,
      });
      assert.equal((await ask(handed)).status, 200);
      assert.equal((await ask(tunnelled)).status, 200);
      assert.deepEqual(proxy.asked, [`POST http://${FAR}:${port}${place.path}`, `CONNECT ${FAR}:${port}`]);
    },
  );

  prove(
    [place.field("tunnel.backendRef.namespace"), place.field("tunnel.backendRef.port")],
    `the proxy of a member may be the port of a Service in another namespace ${of}`,
    async (context) => {
      const { port } = await place.start(context);
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
      const gateway = await serve(context, place, { host: FAR, port, block }, service);
      assert.equal((await ask(gateway)).status, 200);
      assert.equal(proxy.asked.length, 1);
    },
  );
}
