/** The appProtocol of a Service port says which version of HTTP its endpoints are spoken to in. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import { documents, GATEWAY, startGateway } from "../../support/gateway/gateway.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { contextOf } from "../../support/proofs/prove.ts";

function service(name: string, port: number, appProtocol = ""): string {
  const says = appProtocol === "" ? "" : `, appProtocol: ${appProtocol}`;
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {ports: [{name: web, port: 80${says}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: web, port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}}
spec:
  parentRefs: [{name: gw}]
  rules: [{matches: [{path: {value: /${name}}}], backendRefs: [{name: ${name}, port: 80}]}]
`;
}

test("h2c, grpc and http2 are spoken as HTTP/2 whoever asks, http and ws as HTTP/1.1", async (t) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  const modern = await startHttp2Upstream(t, (stream) => {
    stream.respond({ ":status": 200, "x-version": "2" });
    stream.end();
  });
  const old = await startEcho(context);
  const services = [
    service("h2c", modern.port, "kubernetes.io/h2c"),
    service("grpc", modern.port, "grpc"),
    service("http2", modern.port, "http2"),
    service("http", old.port, "http"),
    service("ws", old.port, "kubernetes.io/ws"),
  ];
  const gateway = await startGateway(context, documents(GATEWAY, ...services));
  const session = await connectHttp2(gateway.url());
  t.after(() => session.destroy());
  for (const path of ["/h2c", "/grpc", "/http2"])
    assert.equal((await fetch(gateway.url() + path)).headers.get("x-version"), "2", path);
  for (const path of ["/http", "/ws"]) {
    const { status, headers } = await sendHttp2(session, { ":path": path, ":authority": "shop.test" });
    assert.deepEqual([status, headers["x-upstream"]], [200, "echo"], path);
  }
});

test("where nobody says it, a client's HTTP/2 goes on as such to those who speak it, and as HTTP/1.1 to the others", async (t) => {
  const context = contextOf(t);
  const modern = await startHttp2Upstream(t, (stream) => {
    stream.respond({ ":status": 200, "x-version": "2" });
    stream.end();
  });
  const old = await startEcho(context);
  const rude = await startServer(t, (socket) => socket.destroy());
  const services = [service("modern", modern.port), service("old", old.port), service("rude", rude)];
  const gateway = await startGateway(context, documents(GATEWAY, ...services));
  const session = await connectHttp2(gateway.url());
  t.after(() => session.destroy());
  const ask = (path: string, body?: string) => {
    const head = { ":method": body === undefined ? "GET" : "POST", ":path": path, ":authority": "shop.test" };
    return sendHttp2(session, head, body === undefined ? {} : { body });
  };
  const several = await Promise.all(Array.from({ length: 5 }, () => ask("/modern")));
  assert.deepEqual(
    several.map(({ headers }) => headers["x-version"]),
    ["2", "2", "2", "2", "2"],
  );
  const told = await Promise.all(["one", "two", "three"].map((body) => ask("/old", body)));
  assert.deepEqual(
    told.map(({ status, body }) => [status, echoed(body.toString()).body]),
    [
      [200, "one"],
      [200, "two"],
      [200, "three"],
    ],
  );
  assert.equal(old.seen.length, 3, "no request is sent to find out");
  assert.equal((await ask("/rude")).status, 503);
  const grpc = { ":method": "POST", ":path": "/old/Method", "content-type": "application/grpc", te: "trailers" };
  const refused = await sendHttp2(session, { ...grpc, ":authority": "shop.test" }, { body: "x" });
  assert.deepEqual([refused.headers["grpc-status"], old.seen.length], ["14", 3], "gRPC has no older version");
});

async function startServer(t: TestContext, serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    serve(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  return port;
}
