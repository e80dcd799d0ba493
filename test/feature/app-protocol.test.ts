/** The appProtocol of a Service port says which version of HTTP its endpoints are spoken to in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startEcho } from "../support/echo.ts";
import { documents, GATEWAY, startGateway } from "../support/gateway.ts";
import { connectHttp2, sendHttp2 } from "../support/http2.ts";
import { startHttp2Upstream } from "../support/http2-upstream.ts";

function service(name: string, port: number, appProtocol: string): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {ports: [{name: web, port: 80, appProtocol: ${appProtocol}}]}
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
  const context = { after: (clean: () => void) => t.after(clean), dropped: undefined };
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
