/** The line of the access log that a connection of bytes leaves when it is over. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  BindSchema,
  ListenerSchema,
  ObjectRefSchema,
  Protocol,
  TcpRouteSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { createAccessLog } from "../../../src/telemetry/access-log.ts";
import { BIND, startDataPlane, staticBackend } from "../../support/gateway/data-plane.ts";

const GATEWAY = create(ObjectRefSchema, { kind: "Gateway", namespace: "default", name: "gw" });
const SETTING = [
  resourceOf("Bind", create(BindSchema, { key: BIND, gateway: GATEWAY, port: 80, protocol: Protocol.TCP })),
  resourceOf(
    "Listener",
    create(ListenerSchema, { key: "l", bind: BIND, gateway: GATEWAY, name: "tcp", protocol: Protocol.TCP }),
  ),
];
const ROUTE = resourceOf(
  "TcpRoute",
  create(TcpRouteSchema, {
    key: "tcproute/default/db",
    object: create(ObjectRefSchema, { kind: "TCPRoute", namespace: "default", name: "db" }),
    parents: [{ listener: "l" }],
    backends: [{ weight: 1, backend: "backend/default/b" }],
  }),
);

type Line = Readonly<Record<string, unknown>>;

interface Logged {
  readonly port: number;
  /** The next line. */
  line(): Promise<Line>;
}

async function logged(t: TestContext, ...resources: readonly Resource[]): Promise<Logged> {
  const lines: Line[] = [];
  let next = Promise.withResolvers<void>();
  const accessLog = createAccessLog({
    format: "json",
    delayMs: 0,
    write(text) {
      for (const line of text.trimEnd().split("\n")) lines.push(JSON.parse(line) as Line);
      next.resolve();
      next = Promise.withResolvers();
      return true;
    },
  });
  const { proxy, port } = await startDataPlane([...SETTING, ...resources], { telemetry: { accessLog } });
  t.after(() => proxy.close());
  return {
    port,
    async line() {
      for (;;) {
        const { promise } = next;
        const line = lines.shift();
        if (line !== undefined) return line;
        await promise;
      }
    },
  };
}

async function upstream(t: TestContext, serve: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    t.after(() => void socket.destroy());
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Says what is given, ends, and hears the rest. */
async function talk(port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined);
  socket.resume();
  socket.end(text);
  const closed = once(socket, "close");
  await once(socket, "connect");
  await closed;
  return socket;
}

const DURATION = /^\d+ms$/;

test("a connection that was served is one line, written at its end", async (t) => {
  const port = await upstream(t, (socket) => void socket.pipe(socket));
  const gateway = await logged(t, ROUTE, staticBackend("b", port));
  await talk(gateway.port, "hello");
  const { level, time, scope, duration, "src.addr": source, ...fields } = await gateway.line();
  assert.deepEqual([level, scope], ["info", "request"]);
  assert.match(String(time), /^20\d\d-/);
  assert.match(String(duration), DURATION);
  assert.match(String(source), /^127\.0\.0\.1:\d+$/);
  assert.deepEqual(fields, {
    gateway: "default/gw",
    listener: "tcp",
    route_rule: "0",
    route: "default/db",
    endpoint: `127.0.0.1:${port}`,
    protocol: "tcp",
  });
});

test("a connection that nobody serves says why", async (t) => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const { port: closed } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const unrouted = await logged(t);
  await talk(unrouted.port, "hello");
  const { reason, error, listener } = await unrouted.line();
  assert.deepEqual([reason, error, listener], ["NotFound", "route not found", "tcp"]);
  const unserved = await logged(t, ROUTE, staticBackend("b", closed));
  await talk(unserved.port, "hello");
  const line = await unserved.line();
  assert.deepEqual(
    [line["reason"], line["route"], line["endpoint"]],
    ["UpstreamFailure", "default/db", `127.0.0.1:${closed}`],
  );
  assert.match(String(line["error"]), /ECONNREFUSED/);
});

test("a backend that breaks off is an error, and a client that does is none", async (t) => {
  const port = await upstream(t, (socket) => {
    socket.on("data", (chunk: Buffer) => {
      if (chunk.toString() === "break") socket.resetAndDestroy();
      else socket.write("heard");
    });
  });
  const gateway = await logged(t, ROUTE, staticBackend("b", port));
  const broken = connect(gateway.port, "127.0.0.1");
  broken.on("error", () => undefined);
  broken.write("break");
  assert.equal((await gateway.line())["reason"], "UpstreamFailure");
  const leaving = connect(gateway.port, "127.0.0.1");
  leaving.write("hello");
  await once(leaving, "data");
  leaving.resetAndDestroy();
  assert.equal((await gateway.line())["reason"], undefined);
});
