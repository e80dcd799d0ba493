/** One connection through everything that can be on its way, when something on the way breaks. Against real servers. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { createServer } from "node:tls";
import { BackendTlsSchema, VerifyMode } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { PLAIN, type UpstreamTarget } from "../../../../../src/proxy/upstream/dial/connection-settings.ts";
import { Dial } from "../../../../../src/proxy/upstream/dial/dial.ts";
import { DestinationGuard } from "../../../../../src/proxy/upstream/dial/destination-guard.ts";
import { createResolver } from "../../../../../src/proxy/upstream/dial/dns.ts";
import { startForwardProxy } from "../../../../support/servers/forward-proxy.ts";
import { startRawUpstream } from "../../../../support/servers/upstream.ts";
import { createSelfSigned } from "../../../../support/servers/tls-upstream.ts";

const ANY = create(BackendTlsSchema, { verify: VerifyMode.NONE });
const pair = createSelfSigned("any");

/** Through a proxy behind TLS to the port, in TLS. `raw` are the proxy's connections, below its TLS. */
async function open(t: TestContext, port: number, connectTimeoutMs = 5_000) {
  const proxy = await startForwardProxy(t, { pair });
  const reached = {
    target: { ...PLAIN, host: "127.0.0.1", port: proxy.port, unixPath: "", tls: ANY },
    authorization: undefined,
    begin: () => () => undefined,
  };
  const target: UpstreamTarget = {
    host: "127.0.0.1",
    port,
    unixPath: "",
    tls: ANY,
    tcp: undefined,
    proxy: { key: "proxy", alwaysTunnels: true, resolve: () => reached },
  };
  const resolver = createResolver();
  t.after(() => resolver.close());
  const outcome = Promise.withResolvers<Socket>();
  const owner = { ready: outcome.resolve, failed: outcome.reject };
  const dial = new Dial(target, [], { resolver, guard: new DestinationGuard(), connectTimeoutMs }, owner);
  dial.start();
  return { dial, proxy, outcome: outcome.promise };
}

test("a tunnel that breaks below its TLS ends the connection that runs in it, and nothing else", async (t) => {
  const server = createServer(
    { cert: pair.certificate, key: pair.key },
    (socket) => void socket.on("error", () => undefined),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const { proxy, outcome } = await open(t, address.port);
  const socket = await outcome;
  socket.on("error", () => undefined);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const raw of proxy.sockets) raw.write("no record of TLS at all");
  await closed;
  assert.equal(socket.destroyed, true);
});

test("an upstream that never shakes hands is given up in time, with everything on the way", async (t) => {
  const silent = await startRawUpstream((socket) => void socket.resume());
  t.after(() => silent.close());
  const { proxy, outcome } = await open(t, silent.port, 300);
  await assert.rejects(outcome, { code: "connect_timeout" });
  for (const raw of proxy.sockets) if (!raw.destroyed) await once(raw, "close");
});

test("a dial that is called off says nothing more and leaves nothing open", async (t) => {
  const arrived = Promise.withResolvers<Socket>();
  const silent = await startRawUpstream((socket) => void (socket.resume(), arrived.resolve(socket)));
  t.after(() => silent.close());
  const { dial, outcome } = await open(t, silent.port);
  const socket = await arrived.promise;
  dial.cancel();
  await once(socket, "close");
  const first = await Promise.race([
    outcome.then(
      () => "told",
      () => "told",
    ),
    Promise.resolve("nothing"),
  ]);
  assert.equal(first, "nothing");
});
