/** `tcp` and `http` of a backend block, set inline on a GwBackend and by a GwPolicy, through real sockets. */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BLOCK_PLACES, type BlockPlace } from "../../support/proofs/block-places.ts";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { gatewayRef, policy } from "../../support/proofs/policy-places.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { keepaliveOptions } from "../../support/servers/socket-options.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";

/** Long after the limits that are proven, and long before the usual ones: its answer is another. */
const LATER = "traffic: {timeouts: {request: 6s}}";

/** A gateway with the route `web` to a GwBackend with the block at the place, and perhaps a policy of the route. */
function serve(
  context: ProofContext,
  place: BlockPlace,
  { port, block, traffic }: { readonly port: number; readonly block: string; readonly traffic?: string },
): Promise<TestGateway> {
  const objects = place.objects("web", `static: {host: 127.0.0.1, port: ${port}}`, block);
  const late = policy("late", { refs: gatewayRef(), says: LATER });
  const more = traffic === undefined ? [] : [routePolicy("traffic", "web", `  traffic: {${traffic}}`)];
  return startGateway(context, documents(GATEWAY, route("web", "web"), objects, late, ...more));
}

for (const place of BLOCK_PLACES) {
  const on = `(${place.kind})`;

  prove(
    place.field("tcp.connectTimeout"),
    `a handshake that takes longer is given up with 504, and tried again where a rule says so ${on}`,
    async (context) => {
      let connections = 0;
      const silent = await startRawUpstream((socket) => void (connections++, socket.resume()));
      context.after(() => silent.close());
      const block = "tcp: {connectTimeout: 200ms}, tls: {insecureSkipVerify: All}";
      const gateway = await serve(context, place, { port: silent.port, block, traffic: "retry: {attempts: 1}" });
      const { status, body } = await call(gateway.url());
      assert.deepEqual([status, body, connections], [504, "upstream call timeout", 2]);
    },
  );

  prove(
    [place.field("tcp.keepalive.time"), place.field("tcp.keepalive.interval"), place.field("tcp.keepalive.retries")],
    `connections to the upstream are probed as the block says ${on}`,
    async (context) => {
      const { port } = await startEcho(context);
      const block = "tcp: {keepalive: {time: 50s, interval: 7s, retries: 3}}";
      const gateway = await serve(context, place, { port, block });
      assert.equal((await call(gateway.url())).status, 200);
      assert.deepEqual(await keepaliveOptions(port), { seconds: 50, intervalSeconds: 7, probes: 3 });
    },
  );

  prove(
    place.field("http.version"),
    `HTTP2 is spoken to an upstream whatever the client speaks, and HTTP1 too ${on}`,
    async (context) => {
      const modern = await startHttp2Upstream(context, (stream) => {
        stream.respond({ ":status": 200, "x-version": "2" });
        stream.end();
      });
      const old = await startEcho(context);
      const objects = (name: string, port: number, version: string): string =>
        documents(
          place.objects(name, `static: {host: 127.0.0.1, port: ${port}}`, `http: {version: ${version}}`),
          route(name, name, `/${name}`),
        );
      const gateway = await startGateway(
        context,
        documents(GATEWAY, objects("two", modern.port, "HTTP2"), objects("one", old.port, "HTTP1")),
      );
      assert.equal((await call(`${gateway.url()}/two`)).headers["x-version"], "2");
      const session = await connectHttp2(gateway.url());
      context.after(() => void session.destroy());
      const asked = { ":path": "/one", ":authority": "web.test", "content-type": "application/grpc" };
      const { status, body } = await sendHttp2(session, asked);
      assert.deepEqual([status, echoed(body.toString()).url], [200, "/one"]);
    },
  );

  prove(
    place.field("http.requestTimeout"),
    `an attempt that takes longer ends with 504 before its answer, and is tried again where a rule says so ${on}`,
    async (context) => {
      const { port, seen } = await startEcho(context);
      const block = "http: {requestTimeout: 1s}";
      const gateway = await serve(context, place, { port, block, traffic: "retry: {attempts: 1}" });
      const { status, body } = await call(`${gateway.url()}/slow/1`);
      assert.deepEqual([status, body, seen.length], [504, "upstream call timeout", 2]);
      assert.equal((await call(gateway.url())).status, 200);
    },
  );

  prove(place.field("http.requestTimeout"), `an answer that takes longer is cut off ${on}`, async (context) => {
    const cutAfterMs = Promise.withResolvers<number>();
    const server = createServer((_request, response) => {
      const startedMs = performance.now();
      response.write("begun");
      response.on("close", () => cutAfterMs.resolve(performance.now() - startedMs));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    context.after(() => void (server.closeAllConnections(), server.close()));
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    const gateway = await serve(context, place, { port: address.port, block: "http: {requestTimeout: 1s}" });
    await assert.rejects(call(gateway.url()), { code: "ECONNRESET" });
    // The request's own limit would have cut it much later.
    assert.ok((await cutAfterMs.promise) < 5_500);
  });
}

prove([], "the strongest level that has a block supplies all of it", async (context) => {
  const { port } = await startEcho(context);
  const [inline, attached] = BLOCK_PLACES as readonly [BlockPlace, BlockPlace];
  const everywhere = policy("all", { refs: gatewayRef(), says: "backend: {http: {version: HTTP2}}" });
  for (const place of [inline, attached]) {
    const objects = place.objects("web", `static: {host: 127.0.0.1, port: ${port}}`, "http: {requestTimeout: 5s}");
    const web = documents(GATEWAY, route("web", "web"), objects);
    const gateway = await startGateway(context, documents(web, everywhere));
    // The upstream speaks HTTP/1.1 alone: of the Gateway's block nothing is left.
    assert.equal((await call(gateway.url())).status, 200, place.kind);
    await gateway.change(documents(GATEWAY, route("web", "web"), staticBackend("web", port), everywhere));
    assert.equal((await call(gateway.url())).status, 503, place.kind);
  }
});

prove([], "a changed block is for new connections: what is under way goes on", async (context) => {
  const first = Promise.withResolvers<ServerResponse>();
  const ports: (number | undefined)[] = [];
  const server = createServer((request, response) => {
    ports.push(request.socket.remotePort);
    if (request.url === "/held") first.resolve(response);
    else response.end("fine");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => void (server.closeAllConnections(), server.close()));
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  const [inline] = BLOCK_PLACES as readonly [BlockPlace];
  const objects = (block: string): string =>
    documents(GATEWAY, route("web", "web"), inline.objects("web", `static: {host: 127.0.0.1, port: ${port}}`, block));
  const gateway = await startGateway(context, objects("tcp: {keepalive: {time: 50s}}"));
  assert.equal((await call(gateway.url())).body, "fine");
  const held = call(`${gateway.url()}/held`);
  const response = await first.promise;
  await gateway.change(objects("tcp: {keepalive: {time: 60s}}"));
  assert.equal((await call(gateway.url())).body, "fine");
  response.end("late");
  assert.equal((await held).body, "late");
  assert.equal(ports[0], ports[1], "the second request took the connection of the first");
  assert.notEqual(ports[1], ports[2]);
});
