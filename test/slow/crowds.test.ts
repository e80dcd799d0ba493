/** Many clients that do next to nothing: what each costs is bounded, and the others are served meanwhile. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { startStressedGateway, BIG_BYTES } from "../support/gateway/stressed-gateway.ts";
import { eventually } from "../support/gateway/process.ts";
import { FRAME, frame, frameClient, headers } from "../support/clients/http2-frames.ts";

const CROWD = join(import.meta.dirname, "crowd.ts");

/** Resolves when all of them have got their answer. */
async function crowd(t: TestContext, port: number, count: number, kind: string): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, ["--import", "tsx", CROWD, String(port), String(count), kind], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string]; // as the event is declared
  assert.equal(line, "ready");
  return async () => {
    child.stdin.end();
    await once(child, "exit");
  };
}

function sockets(t: TestContext, port: number, count: number, bytes: string): readonly Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => socket.destroy());
    socket.write(bytes, "latin1");
    t.after(() => void socket.destroy());
    return socket;
  });
}

/** Resolves when the gateway has ended all of them; one that does not read would not notice. */
async function allEnd(list: readonly Socket[]): Promise<void> {
  await Promise.all(
    list.map(async (socket) => {
      socket.resume();
      if (!socket.destroyed && !socket.readableEnded) await Promise.race([once(socket, "end"), once(socket, "close")]);
    }),
  );
}

/** KiB that each may cost at most. Measured: about a third of it. */
const CROWDS = [
  { kind: "http1", count: 10_000, maxKb: 40 },
  { kind: "tls", count: 1_000, maxKb: 200 },
  { kind: "http2", count: 1_000, maxKb: 200 },
] as const;

for (const { kind, count, maxKb } of CROWDS)
  test(`${count} idle connections (${kind}) cost little, and the others are served`, async (t) => {
    const gateway = await startStressedGateway(t);
    const before = gateway.residentMb();
    let leave = async (): Promise<void> => undefined;
    const port = kind === "tls" ? gateway.securePort : gateway.port;
    const served = await gateway.serving(async () => (leave = await crowd(t, port, count, kind)));
    const each = ((gateway.residentMb() - before) * 1024) / count;
    t.diagnostic(`${count} idle connections (${kind}): ${each.toFixed(1)} KiB each, ${served}`);
    assert.ok(each < maxKb, `${each} KiB for each connection`);
    await leave();
    gateway.isSound();
  });

test("heads that never end are ended, and so are refused clients that stay", async (t) => {
  const gateway = await startStressedGateway(t, "{http: {http1IdleTimeout: 3s}}");
  const before = gateway.residentMb();
  const files = gateway.openFiles();
  const slow = sockets(t, gateway.port, 1_000, "GET / HTTP/1.1\r\nHost: a.test\r\nX-A: ");
  const drips = setInterval(() => {
    for (const socket of slow) if (socket.writable) socket.write("a");
  }, 200);
  t.after(() => clearInterval(drips));
  const refused = sockets(t, gateway.port, 500, "GET / HTTP/1.1\r\nX-A : 1\r\n\r\n");
  const served = await gateway.serving(() => allEnd([...slow, ...refused]));
  // Their side of the connection is still open; ours is not kept for them.
  await eventually(async () => assert.ok(gateway.openFiles() < files + 50));
  const grown = gateway.residentMb() - before;
  t.diagnostic(`1,500 slow or refused connections: ${grown.toFixed(0)} MiB, ${served}`);
  assert.ok(grown < 150, `grew by ${grown.toFixed(0)} MiB`);
  gateway.isSound();
});

test("bodies that trickle hold nobody up", async (t) => {
  const gateway = await startStressedGateway(t);
  const before = gateway.residentMb();
  const head = "POST /upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\n";
  const slow = sockets(t, gateway.port, 500, head);
  const trickle = async (): Promise<void> => {
    for (let round = 0; round < 50; round++) {
      for (const socket of slow) socket.write("aaaaaaaaaa");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const served = await gateway.serving(() => trickle());
  const grown = gateway.residentMb() - before;
  t.diagnostic(`500 trickling bodies: ${grown.toFixed(0)} MiB, ${served}`);
  assert.ok(grown < 150, `grew by ${grown.toFixed(0)} MiB`);
  gateway.isSound();
});

test("clients that do not read what they asked for hold back the upstream and not the memory", async (t) => {
  const gateway = await startStressedGateway(t);
  const before = gateway.residentMb();
  const deaf = sockets(t, gateway.port, 200, "GET /big HTTP/1.1\r\nHost: a.test\r\n\r\n");
  for (const socket of deaf) socket.pause();
  const closed = Buffer.from([0, 4, 0, 0, 0, 0]);
  const sessions = Array.from({ length: 20 }, () => frameClient(gateway.port, closed));
  t.after(() => sessions.forEach(({ socket }) => void socket.destroy()));
  const path = (name: string) => [":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", name];
  for (const { send } of sessions) for (let at = 0; at < 50; at++) send(headers(2 * at + 1, path("/big")));
  const headed = sessions.map(({ until }) => until(({ type, stream }) => type === FRAME.headers && stream === 99));
  const served = await gateway.serving(() => Promise.all(headed));
  const grown = gateway.residentMb() - before;
  const asked = (1_200 * BIG_BYTES) / 1_048_576;
  t.diagnostic(`1,200 answers of 16 MiB that nobody reads: ${grown.toFixed(0)} of ${asked} MiB, ${served}`);
  assert.ok(grown < 1_000, `grew by ${grown.toFixed(0)} MiB`);
  const wide = Buffer.from([0x7f, 0, 0, 0]);
  const [first] = sessions;
  first?.send(frame(FRAME.windowUpdate, 0, 0, wide), frame(FRAME.windowUpdate, 0, 1, wide));
  assert.ok(
    (await first?.until(({ type, stream, flags }) => type === FRAME.data && stream === 1 && flags === 1)) !== undefined,
  );
  gateway.isSound();
});

test("handshakes that are begun and left are ended", async (t) => {
  const gateway = await startStressedGateway(t, "{tls: {handshakeTimeout: 2s}}");
  const before = gateway.residentMb();
  // The record says that 512 bytes follow.
  const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
  const half = sockets(t, gateway.securePort, 500, hello);
  const silent = sockets(t, gateway.securePort, 500, "");
  const served = await gateway.serving(() => allEnd([...half, ...silent]));
  const grown = gateway.residentMb() - before;
  t.diagnostic(`1,000 handshakes left half-way: ${grown.toFixed(0)} MiB, ${served}`);
  assert.ok(grown < 200, `grew by ${grown.toFixed(0)} MiB`);
  gateway.isSound();
});
