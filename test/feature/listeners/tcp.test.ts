/** Routes of bytes through real sockets: plain, after a handshake of ours, and with the handshake passed on. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { test, type TestContext } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BindSchema,
  ListenerSchema,
  Protocol,
  TcpRouteSchema,
  type ListenerTlsSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { BIND, startDataPlane, staticBackend, type DataPlane } from "../../support/gateway/data-plane.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const AUTHORITY = createAuthority("test", validNow());

function leaf(name: string): { cert: string; key: string } {
  const { certificate, key } = createLeaf(AUTHORITY, [name], validNow());
  return { cert: certificate, key };
}

function bindOf(protocol: Protocol): Resource {
  return resourceOf("Bind", create(BindSchema, { key: BIND, port: 80, protocol }));
}

function listenerOf(
  name: string,
  hostname: string,
  protocol: Protocol,
  tls?: MessageInitShape<typeof ListenerTlsSchema>,
): Resource {
  const more = tls === undefined ? {} : { tls };
  return resourceOf("Listener", create(ListenerSchema, { key: name, bind: BIND, name, hostname, protocol, ...more }));
}

function routeOf(listener: string, backend: string, hostnames: string[] = []): Resource {
  const backends = [{ weight: 1, backend: `backend/default/${backend}` }];
  const key = `tcproute/default/${listener}`;
  return resourceOf("TcpRoute", create(TcpRouteSchema, { key, parents: [{ listener, hostnames }], backends }));
}

async function plane(t: TestContext, resources: Resource[]): Promise<DataPlane> {
  const started = await startDataPlane(resources);
  t.after(() => started.proxy.close());
  return started;
}

/** A server that repeats what it hears behind its own name, and ends when the client does. */
async function upstream(t: TestContext, name: string, tls?: { cert: string; key: string }): Promise<number> {
  const serve = (socket: Socket): void => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => void socket.write(`${name}:${chunk.toString()}`));
    socket.on("end", () => socket.end(`${name}:bye`));
  };
  const options = { allowHalfOpen: true };
  const server = tls === undefined ? createServer(options, serve) : createTlsServer({ ...options, ...tls }, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function talk(socket: Socket): Promise<string> {
  let heard = "";
  socket.setEncoding("utf8").on("data", (text: string) => (heard += text));
  socket.write("hello");
  while (!heard.includes("hello")) await once(socket, "data");
  socket.end();
  await once(socket, "close");
  return heard;
}

function secure(t: TestContext, port: number, servername: string): TLSSocket {
  const raw = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const socket = connectTls({ socket: raw, servername, ca: AUTHORITY.certificate });
  t.after(() => void socket.destroy());
  return socket;
}

test("bytes go both ways, and each side's end reaches the other", async (t) => {
  const port = await upstream(t, "plain");
  const { port: gateway } = await plane(t, [
    bindOf(Protocol.TCP),
    listenerOf("tcp", "", Protocol.TCP),
    routeOf("tcp", "b"),
    staticBackend("b", port),
  ]);
  const socket = connect({ port: gateway, host: "127.0.0.1", allowHalfOpen: true });
  assert.equal(await talk(socket), "plain:helloplain:bye");
});

test("a megabyte passes whole in both directions although nobody reads for a while", async (t) => {
  const size = 8 * 1024 * 1024;
  const server = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const { port: gateway } = await plane(t, [
    bindOf(Protocol.TCP),
    listenerOf("tcp", "", Protocol.TCP),
    routeOf("tcp", "b"),
    staticBackend("b", (server.address() as AddressInfo).port),
  ]);
  const socket = connect({ port: gateway, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(Buffer.alloc(size, 7));
  let received = 0;
  for await (const chunk of socket) received += (chunk as Buffer).length;
  assert.equal(received, size);
});

test("a connection without a route or a reachable backend is closed", async (t) => {
  const { port: gateway, proxy } = await plane(t, [bindOf(Protocol.TCP), listenerOf("tcp", "", Protocol.TCP)]);
  const closed = async (): Promise<void> => {
    const socket = connect(gateway, "127.0.0.1");
    socket.on("error", () => undefined);
    await once(socket, "close");
  };
  await closed();
  const reserved = createServer();
  await new Promise<void>((resolve) => reserved.listen(0, "127.0.0.1", resolve));
  const { port } = reserved.address() as AddressInfo;
  await new Promise((resolve) => reserved.close(resolve));
  await proxy.apply({ set: [routeOf("tcp", "b"), staticBackend("b", port)], removed: [] });
  await closed();
});

test("a TLS listener ends the handshake or passes it on, each by its server name", async (t) => {
  const own = leaf("ours.test");
  const theirs = await upstream(t, "theirs", leaf("theirs.test"));
  const ours = await upstream(t, "ours");
  const { port: gateway } = await plane(t, [
    bindOf(Protocol.TLS),
    listenerOf("ours", "ours.test", Protocol.TLS, { certificatePem: own.cert, privateKeyPem: own.key }),
    listenerOf("theirs", "*.test", Protocol.TLS, { passthrough: true }),
    routeOf("ours", "ours"),
    routeOf("theirs", "theirs", ["theirs.test"]),
    staticBackend("ours", ours),
    staticBackend("theirs", theirs),
  ]);
  assert.equal(await talk(secure(t, gateway, "ours.test")), "ours:helloours:bye");
  assert.equal(await talk(secure(t, gateway, "theirs.test")), "theirs:hellotheirs:bye");
  await assert.rejects(once(secure(t, gateway, "other.test"), "secureConnect"));
  const plain = connect(gateway, "127.0.0.1");
  plain.write("GET / HTTP/1.1\r\nhost: theirs.test\r\n\r\n");
  plain.on("error", () => undefined);
  const [hadError] = (await once(plain, "close")) as [boolean];
  assert.equal(typeof hadError, "boolean");
});
