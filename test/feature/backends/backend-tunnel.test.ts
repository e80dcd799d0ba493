/** `tunnel` of a backend block: connections through a forward proxy, set inline on a GwBackend and by a GwPolicy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { BLOCK_PLACES, type BlockPlace } from "../../support/proofs/block-places.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { startForwardProxy, type ForwardProxy } from "../../support/servers/forward-proxy.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { policy } from "../../support/proofs/policy-places.ts";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startTlsUpstream, validNow, type Handshake } from "../../support/servers/tls-upstream.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";
import { startWebSocketEcho } from "../../support/servers/web-socket.ts";

/** Nobody but the proxy knows where that is. */
const FAR = "far.test";

function proxyBackend(port: number, policies = ""): string {
  const block = policies === "" ? "" : `  policies: {${policies}}\n`;
  return `${staticBackend("proxy", port).trimEnd()}\n${block}`;
}

const THROUGH = "tunnel: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: proxy}}";
const ALWAYS = THROUGH.replace("}}", "}, mode: Connect}");

interface Served {
  readonly gateway: TestGateway;
  readonly proxy: ForwardProxy;
}

/** The route `web` to far.test at the port through the proxy, which knows that it is this machine. */
async function serve(
  context: ProofContext,
  place: BlockPlace,
  { port, block, more = [] }: { readonly port: number; readonly block: string; readonly more?: readonly string[] },
): Promise<Served> {
  const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
  const objects = place.objects("web", `static: {host: ${FAR}, port: ${port}}`, block);
  const own = more.some((object) => object.includes("name: proxy}")) ? [] : [proxyBackend(proxy.port)];
  const gateway = await startGateway(context, documents(GATEWAY, route("web", "web"), objects, ...own, ...more));
  return { gateway, proxy };
}

for (const place of BLOCK_PLACES) {
  const on = `(${place.kind})`;
  const field = (name: string): string => place.field(`tunnel.${name}`);

  prove(
    ["group", "kind", "name"].map((name) => field(`backendRef.${name}`)),
    `plain HTTP is handed to the proxy in absolute form, on connections that are kept, with the name unresolved ${on}`,
    async (context) => {
      const { port } = await startEcho(context);
      const { gateway, proxy } = await serve(context, place, { port, block: THROUGH });
      const answer = await call(`${gateway.url()}/path?q=1`, {
        method: "POST",
        body: "hello",
        headers: { host: "a.test" },
      });
      const { url, headers, body } = echoed(answer.body);
      assert.deepEqual([url, headers["host"], body], ["/path?q=1", `${FAR}:${port}`, "hello"]);
      assert.equal((await call(gateway.url())).status, 200);
      assert.deepEqual(proxy.asked, [`POST http://${FAR}:${port}/path?q=1`, `GET http://${FAR}:${port}/`]);
    },
  );

  prove(field("mode"), `Connect opens a tunnel for plain HTTP too ${on}`, async (context) => {
    const { port } = await startEcho(context);
    const { gateway, proxy } = await serve(context, place, { port, block: ALWAYS });
    const { url, headers } = echoed((await call(`${gateway.url()}/path`, { headers: { host: "a.test" } })).body);
    assert.deepEqual([url, headers["host"]], ["/path", FAR]);
    assert.equal((await call(gateway.url())).status, 200);
    assert.deepEqual(proxy.asked, [`CONNECT ${FAR}:${port}`]);
  });

  prove(field("url"), `the proxy may be a URL, whose path says nothing ${on}`, async (context) => {
    const { port } = await startEcho(context);
    const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
    const block = `tunnel: {url: "http://127.0.0.1:${proxy.port}/ignored"}`;
    const objects = place.objects("web", `static: {host: ${FAR}, port: ${port}}`, block);
    const gateway = await startGateway(context, documents(GATEWAY, route("web", "web"), objects));
    assert.equal((await call(gateway.url())).status, 200);
    assert.deepEqual(proxy.asked, [`GET http://${FAR}:${port}/`]);
  });

  prove([], `TLS to the destination runs inside the tunnel ${on}`, async (context) => {
    const upstream = await startTlsUpstream(context, [FAR]);
    const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority });
    const block = `${THROUGH}, tls: {caCertificateRefs: [{name: trusted}]}`;
    const { gateway, proxy } = await serve(context, place, { port: upstream.port, block, more: [trusted] });
    const answer = await call(gateway.url());
    assert.equal(answer.status, 200, answer.body);
    assert.equal((JSON.parse(answer.body) as Handshake).serverName, FAR);
    assert.deepEqual(proxy.asked, [`CONNECT ${FAR}:${upstream.port}`]);
  });
}

const [INLINE] = BLOCK_PLACES as readonly [BlockPlace];

/** A proxy behind TLS, and what its GwBackend needs to trust it. */
async function secureProxy(context: ProofContext, port: number): Promise<{ proxy: ForwardProxy; objects: string[] }> {
  const authority = createAuthority("proxy authority", validNow());
  const pair = createLeaf(authority, ["127.0.0.1"], validNow());
  const proxy = await startForwardProxy(context, { pair, places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
  const objects = [
    pemObject("ConfigMap", "proxies", { "ca.crt": authority.certificate }),
    proxyBackend(proxy.port, "tls: {caCertificateRefs: [{name: proxies}]}"),
  ];
  return { proxy, objects };
}

prove([], "a proxy behind TLS is spoken to over TLS, and TLS goes through it", async (context) => {
  const echo = await startEcho(context);
  const plain = await secureProxy(context, echo.port);
  const first = await serve(context, INLINE, { port: echo.port, block: THROUGH, more: plain.objects });
  assert.equal((await call(first.gateway.url())).status, 200);
  assert.deepEqual(plain.proxy.asked, [`GET http://${FAR}:${echo.port}/`]);
  const upstream = await startTlsUpstream(context, [FAR]);
  const secure = await secureProxy(context, upstream.port);
  const trusted = pemObject("ConfigMap", "trusted", { "ca.crt": upstream.authority });
  const block = `${THROUGH}, tls: {caCertificateRefs: [{name: trusted}]}`;
  const second = await serve(context, INLINE, { port: upstream.port, block, more: [trusted, ...secure.objects] });
  const answer = await call(second.gateway.url());
  assert.equal(answer.status, 200, answer.body);
  assert.deepEqual(secure.proxy.asked, [`CONNECT ${FAR}:${upstream.port}`]);
});

prove([], "HTTP/2 goes through a tunnel, also when the upstream speaks first", async (context) => {
  const { port } = await startHttp2Upstream(context, (stream) => {
    stream.respond({ ":status": 200, "x-version": "2" });
    stream.end();
  });
  const { gateway, proxy } = await serve(context, INLINE, { port, block: `${THROUGH}, http: {version: HTTP2}` });
  const answer = await call(gateway.url());
  assert.equal(answer.headers["x-version"], "2", answer.body);
  assert.deepEqual(proxy.asked, [`CONNECT ${FAR}:${port}`]);
});

prove(
  [],
  "the proxy gets the credential of its own object, as Proxy-Authorization, and the upstream does not",
  async (context) => {
    const { port } = await startEcho(context);
    const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
    for (const [auth, shown] of [
      ["{key: Basic cHJveHk6c2VjcmV0}", "Basic cHJveHk6c2VjcmV0"],
      ["{key: token}", "Bearer token"],
      ["{key: token, location: {header: {name: x-any, prefix: 'Token '}}}", "Token token"],
    ] as const)
      for (const block of [THROUGH, ALWAYS]) {
        const objects = INLINE.objects("web", `static: {host: ${FAR}, port: ${port}}`, block);
        const more = documents(route("web", "web"), proxyBackend(proxy.port, `auth: ${auth}`));
        const gateway = await startGateway(context, documents(GATEWAY, objects, more));
        const { headers } = echoed(
          (await call(gateway.url(), { headers: { "proxy-authorization": "Basic client" } })).body,
        );
        assert.equal(headers["proxy-authorization"], undefined);
        assert.equal(proxy.shown.at(-1), shown);
      }
  },
);

prove([], "a credential that is for no header closes the way", async (context) => {
  const { port, seen } = await startEcho(context);
  const proxy = await startForwardProxy(context);
  const closed = proxyBackend(proxy.port, "auth: {key: token, location: {cookie: {name: c}}}");
  for (const block of [THROUGH, ALWAYS]) {
    const { gateway } = await serve(context, INLINE, { port, block, more: [closed] });
    assert.equal((await call(gateway.url())).status, 500);
  }
  assert.deepEqual([proxy.asked, seen], [[], []]);
});

prove(
  [],
  "what is no tunnel fails with 503 and is tried again, but not where the proxy wants a credential",
  async (context) => {
    const { port, seen } = await startEcho(context);
    const retry = routePolicy("retry", "web", "  traffic: {retry: {attempts: 1}}");
    const { gateway, proxy } = await serve(context, INLINE, { port, block: ALWAYS, more: [retry] });
    const cases: readonly (readonly [string, number])[] = [
      ["HTTP/1.1 502 Bad Gateway\r\n\r\n", 2],
      ["HTTP/1.1 204 No Content\r\n\r\n", 2],
      ["HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n", 1],
      ["SSH-2.0-none\r\n\r\n", 2],
      [`HTTP/1.1 200 OK\r\nx: ${"a".repeat(8_192)}\r\n\r\n`, 2],
      ["HTTP/1.1 200 OK\r\n", 2],
    ];
    for (const [refusal, tries] of cases) {
      proxy.asked.length = 0;
      proxy.refusal = refusal;
      assert.equal((await call(gateway.url())).status, 503, refusal.slice(0, 40));
      assert.equal(proxy.asked.length, tries, refusal.slice(0, 40));
    }
    proxy.refusal = undefined;
    assert.equal((await call(gateway.url())).status, 200);
    assert.equal(seen.length, 1);
  },
);

prove(
  [],
  "port 80 is not said; a proxy that wants a credential for plain HTTP asks us, not the client",
  async (context) => {
    const seen: string[] = [];
    const proxy = createServer((request, response) => {
      seen.push(`${request.url} ${request.headers.host}`);
      response.writeHead(seen.length === 1 ? 200 : 407, { "proxy-authenticate": "Basic" }).end("from the proxy");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    context.after(() => void (proxy.closeAllConnections(), proxy.close()));
    const { port } = proxy.address() as AddressInfo; // a TCP server's address is one
    const objects = INLINE.objects("web", `static: {host: ${FAR}, port: 80}`, THROUGH);
    const retry = routePolicy("retry", "web", "  traffic: {retry: {attempts: 1}}");
    const more = documents(route("web", "web"), proxyBackend(port), retry);
    const gateway = await startGateway(context, documents(GATEWAY, objects, more));
    assert.equal((await call(`${gateway.url()}/path`)).status, 200);
    assert.deepEqual(seen, [`http://${FAR}/path ${FAR}`]);
    const answer = await call(gateway.url());
    assert.deepEqual([answer.status, answer.body], [503, "upstream call failed"]);
    assert.equal(answer.headers["proxy-authenticate"], undefined);
    assert.equal(seen.length, 2);
  },
);

/** The Service `proxies` in the namespace `egress`, whose one endpoint is this machine. */
function proxyService(port: number): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: proxies, namespace: egress}
spec: {ports: [{name: other, port: 8080}, {name: proxy, port: 3128}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: proxies-1, namespace: egress, labels: {kubernetes.io/service-name: proxies}}
addressType: IPv4
ports: [{name: other, port: 9}, {name: proxy, port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}

for (const place of BLOCK_PLACES)
  prove(
    [place.field("tunnel.backendRef.namespace"), place.field("tunnel.backendRef.port")],
    `the proxy may be the port of a Service in another namespace (${place.kind})`,
    async (context) => {
      const { port } = await startEcho(context);
      const proxy = await startForwardProxy(context, { places: { [`${FAR}:${port}`]: `127.0.0.1:${port}` } });
      const block = "tunnel: {backendRef: {name: proxies, namespace: egress, port: 3128}}";
      const objects = place.objects("web", `static: {host: ${FAR}, port: ${port}}`, block);
      const more = documents(route("web", "web"), proxyService(proxy.port));
      const gateway = await startGateway(context, documents(GATEWAY, objects, more));
      assert.equal((await call(gateway.url())).status, 200);
      assert.deepEqual(proxy.asked, [`GET http://${FAR}:${port}/`]);
    },
  );

prove([], "a policy on a GwBackend or a Service takes its proxy to where these are", async (context) => {
  const { port } = await startEcho(context);
  const service = `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: service}
spec: {parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /service}}], backendRefs: [{name: web, port: 80}]}]}
`;
  const proxy = await startForwardProxy(context);
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      staticBackend("web", port),
      route("web", "web", "/backend"),
      service,
      proxyBackend(proxy.port),
      policy("backend", { refs: "{group: gwproxy.dev, kind: GwBackend, name: web}", says: `backend: {${THROUGH}}` }),
      policy("service", {
        selectors: "{group: '', kind: Service, matchLabels: {app: web}}",
        says: `backend: {${THROUGH}}`,
      }),
    ),
  );
  assert.equal((await call(`${gateway.url()}/backend`)).status, 200);
  assert.equal((await call(`${gateway.url()}/service`)).status, 200);
  assert.deepEqual(proxy.asked, [`GET http://127.0.0.1:${port}/backend`, `GET http://127.0.0.1:${port}/service`]);
});

prove([], "WebSocket goes through a tunnel", async (context) => {
  const { port } = await startWebSocketEcho(context);
  const { gateway, proxy } = await serve(context, INLINE, { port, block: THROUGH });
  const socket = new WebSocket(gateway.url().replace("http:", "ws:"));
  context.after(() => socket.close());
  await once(socket, "open");
  socket.send("hello");
  const [message] = (await once(socket, "message")) as [MessageEvent];
  assert.equal(message.data, "hello");
  assert.deepEqual(proxy.asked, [`CONNECT ${FAR}:${port}`]);
});

prove([], "bytes of a TCPRoute go through a tunnel", async (context) => {
  const greeter = await startRawUpstream((socket) => void (socket.write("hello "), socket.pipe(socket)));
  context.after(() => greeter.close());
  const place = { [`${FAR}:${greeter.port}`]: `127.0.0.1:${greeter.port}` };
  const proxy = await startForwardProxy(context, { places: place });
  const tcp = `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]}]
`;
  const objects = INLINE.objects("web", `static: {host: ${FAR}, port: ${greeter.port}}`, THROUGH);
  const listener = GATEWAY.replace("protocol: HTTP", "protocol: TCP");
  const gateway = await startGateway(context, documents(listener, tcp, objects, proxyBackend(proxy.port)));
  const client = rawClient(Number(new URL(gateway.url()).port), "again");
  context.after(() => void client.socket.destroy());
  await client.until(/hello again/);
  assert.deepEqual(proxy.asked, [`CONNECT ${FAR}:${greeter.port}`]);
});

prove([], "what a Gateway says of backends holds for the bytes of its TCPRoutes", async (context) => {
  const echo = await startEcho(context);
  const proxy = await startForwardProxy(context);
  const tcp = `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]}]
`;
  const listener = GATEWAY.replace("protocol: HTTP", "protocol: TCP");
  const objects = documents(listener, tcp, staticBackend("web", echo.port), proxyBackend(proxy.port));
  const gateway = await startGateway(context, documents(objects, gatewayPolicy("way", `  backend: {${THROUGH}}`)));
  assert.equal((await call(gateway.url())).status, 200);
  assert.deepEqual(proxy.asked, [`CONNECT 127.0.0.1:${echo.port}`]);
  await gateway.change(objects);
  assert.equal((await call(gateway.url())).status, 200);
  assert.equal(proxy.asked.length, 1);
});

prove([], "a proxy that does not exist closes the way: 500", async (context) => {
  const { port, seen } = await startEcho(context);
  for (const place of BLOCK_PLACES) {
    const objects = place.objects("web", `static: {host: 127.0.0.1, port: ${port}}`, THROUGH);
    const gateway = await startGateway(context, documents(GATEWAY, route("web", "web"), objects));
    assert.equal((await call(gateway.url())).status, 500, place.kind);
  }
  assert.deepEqual(seen, []);
});
