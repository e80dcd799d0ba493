/** Clients that send without end what costs them little: memory stays bounded, and the others are served meanwhile. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { startStressedGateway } from "../support/gateway/stressed-gateway.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  frameClient,
  headers,
  type FrameClient,
} from "../support/clients/http2-frames.ts";

const HEAD = [":scheme", "http", ":authority", "a.test", ":path", "/upload"];
const POST = headers(1, [":method", "POST", ...HEAD], 0);
const MAX_GROWTH_MB = 300;

/** As fast as they are taken, until they are all out or the connection ends. */
async function pour(socket: Socket, bytes: Buffer, times: number): Promise<void> {
  for (let at = 0; at < times && socket.writable; at++)
    if (!socket.write(bytes))
      await new Promise<void>((resolve) => {
        const go = (): void => {
          socket.off("drain", go).off("close", go);
          resolve();
        };
        socket.on("drain", go).on("close", go);
      });
}

const repeated = (bytes: Buffer, count: number): Buffer => Buffer.concat(Array.from({ length: count }, () => bytes));

/** A field of 4,000 bytes in the table, and then 4,000 mentions of it of one byte each. */
function bomb(stream: number): Buffer {
  const large = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4_000, 0x61)]);
  const pseudo = Buffer.from([0x82, 0x86, 0x84, 0x01, 0x01, 0x61]);
  const block = Buffer.concat([pseudo, large, Buffer.alloc(4_000, 0xbe)]);
  return frame(FRAME.headers, END_STREAM | END_HEADERS, stream, block);
}

const FLOODS: Readonly<Record<string, (client: FrameClient) => Promise<void>>> = {
  async "empty DATA frames"({ send, socket }) {
    send(POST);
    await pour(socket, repeated(frame(FRAME.data, 0, 1), 1_000), 200);
  },
  async "DATA frames of one byte"({ send, socket }) {
    send(POST);
    await pour(socket, repeated(frame(FRAME.data, 0, 1, "a"), 1_000), 200);
  },
  async "PRIORITY frames"({ socket }) {
    const frames = Array.from({ length: 1_000 }, (_, at) => frame(FRAME.priority, 0, 2 * at + 1, Buffer.alloc(5, 0)));
    await pour(socket, Buffer.concat(frames), 200);
  },
  async "WINDOW_UPDATE frames"({ socket }) {
    await pour(socket, repeated(frame(FRAME.windowUpdate, 0, 0, Buffer.from([0, 0, 0, 1])), 1_000), 200);
  },
  async "frames of unknown types"({ socket }) {
    await pour(socket, repeated(frame(0xfa, 0xff, 0, Buffer.alloc(100)), 1_000), 200);
  },
  async "PING frames"({ socket }) {
    await pour(socket, repeated(frame(FRAME.ping, 0, 0, Buffer.alloc(8)), 1_000), 200);
  },
  async "SETTINGS frames"({ socket }) {
    await pour(socket, repeated(frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 255, 255])), 1_000), 200);
  },
  async "CONTINUATION frames"({ send, socket }) {
    send(frame(FRAME.headers, 0, 1, Buffer.from([0x82])));
    await pour(socket, repeated(frame(FRAME.continuation, 0, 1, Buffer.alloc(16_000)), 10), 200);
  },
  async "field blocks that unpack to much"({ send, socket }) {
    for (let at = 0; at < 500 && socket.writable; at++) send(bomb(2 * at + 1));
    await new Promise<void>((resolve) => void socket.end(() => resolve()));
  },
  async "requests that are reset at once"({ send, socket }) {
    const cancel = Buffer.from([0, 0, 0, 8]);
    const get = [":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", "/hang"];
    for (let at = 0; at < 50_000 && socket.writable; at++)
      send(headers(2 * at + 1, get), frame(FRAME.reset, 0, 2 * at + 1, cancel));
  },
};

for (const [name, flood] of Object.entries(FLOODS))
  test(`${name} without end hold nobody up`, async (t) => {
    const gateway = await startStressedGateway(t);
    const before = gateway.residentMb();
    const clients = Array.from({ length: 5 }, () => frameClient(gateway.port));
    t.after(() => clients.forEach(({ socket }) => void socket.destroy()));
    const served = await gateway.serving(() => Promise.all(clients.map(flood)));
    const grown = gateway.residentMb() - before;
    t.diagnostic(`${name}: ${grown.toFixed(0)} MiB, ${served}`);
    assert.ok(grown < MAX_GROWTH_MB, `grew by ${grown.toFixed(0)} MiB`);
    gateway.isSound();
  });

const HTTP1: Readonly<Record<string, readonly [begin: string, then: string]>> = {
  "requests sent ahead": ["", "GET /hang HTTP/1.1\r\nHost: a.test\r\n\r\n"],
  "chunks of one byte": ["POST /upload HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n"],
  "chunks with long extensions": [
    "POST /upload HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n",
    `1;${"a".repeat(1_000)}\r\na\r\n`,
  ],
  "fields without end": ["GET / HTTP/1.1\r\nHost: a.test\r\n", `X-A: ${"a".repeat(1_000)}\r\n`],
  "empty lines": ["", "\r\n"],
  "a target without end": ["GET /", "a".repeat(1_000)],
};

for (const [name, [begin, then]] of Object.entries(HTTP1))
  test(`${name} hold nobody up`, async (t) => {
    const gateway = await startStressedGateway(t);
    const before = gateway.residentMb();
    const sockets = Array.from({ length: 5 }, () => open(t, gateway.port));
    for (const socket of sockets) socket.write(begin);
    const flood = repeated(Buffer.from(then), 1_000);
    // What is not read any more is not taken either: the flood ends when the connection does, or with the time.
    const attack = (socket: Socket): Promise<void> => Promise.race([pour(socket, flood, 50), pause(5_000)]);
    const served = await gateway.serving(() => Promise.all(sockets.map(attack)));
    const grown = gateway.residentMb() - before;
    t.diagnostic(`${name}: ${grown.toFixed(0)} MiB, ${served}`);
    assert.ok(grown < MAX_GROWTH_MB, `grew by ${grown.toFixed(0)} MiB`);
    gateway.isSound();
  });

function open(t: TestContext, port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => socket.destroy());
  t.after(() => void socket.destroy());
  return socket.resume();
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
