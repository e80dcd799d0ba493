/**
 * WebSocket with `ws` as the server: what it says to each conversation in frames has to reach the client byte for byte as it
 * does without a gateway, over HTTP/1.1, behind TLS, and over HTTP/2 (RFC 8441). And its client, with everything it can do.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test, type TestContext } from "node:test";
import { connect as connectTls } from "node:tls";
import { WebSocket, WebSocketServer } from "ws";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { documents, pemObject, route, startGateway, staticBackend } from "../../support/gateway/gateway.ts";
import { connectHttp2 } from "../../support/clients/http2.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";
import { CONVERSATIONS, type Conversation } from "../../support/clients/web-socket-cases.ts";

const MAX_PAYLOAD = 16_777_216;
const ASK =
  "GET /chat HTTP/1.1\r\nHost: chat.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

function startServer(t: TestContext, perMessageDeflate = false): Promise<number> {
  const options = { maxPayload: MAX_PAYLOAD, perMessageDeflate: perMessageDeflate ? { threshold: 0 } : false };
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    ...options,
    handleProtocols: (offered) => (offered.has("chat.v2") ? "chat.v2" : false),
  });
  server.on("connection", (socket: WebSocket) => {
    socket.on("error", () => undefined);
    socket.on("message", (data: Buffer, binary: boolean) => socket.send(data, { binary }));
  });
  t.after(() => {
    for (const each of server.clients) each.terminate();
    server.close();
  });
  return once(server, "listening").then(() => server.address().port);
}

interface Stage {
  readonly direct: number;
  readonly plain: number;
  readonly secure: number;
  readonly ca: string;
}

async function stage(t: TestContext, perMessageDeflate = false): Promise<Stage> {
  const direct = await startServer(t, perMessageDeflate);
  const authority = createAuthority("test", validNow());
  const { certificate, key } = createLeaf(authority, ["chat.test"], validNow());
  const gateway = await startGateway(
    contextOf(t),
    documents(
      `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
    - {name: http, port: 8080, protocol: HTTP}
    - {name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`,
      pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key }),
      staticBackend("web", direct),
      route("web", "web"),
    ),
  );
  const portOf = (port: number): number => Number(new URL(gateway.url(port)).port);
  return { direct, plain: portOf(8080), secure: portOf(8443), ca: authority.certificate };
}

/** Says it all, and gives back what came until the other side ended: its size and its sum, and the first of it to look at. */
async function converse(stream: Duplex, { bytes, piece = bytes.length }: Conversation): Promise<string> {
  const sum = createHash("sha256");
  let size = 0;
  let first = Buffer.alloc(0);
  // Whether the end is a proper one differs with the transport; what was said before it does not.
  stream.on("error", () => undefined);
  stream.on("data", (chunk: Buffer) => {
    sum.update(chunk);
    if (size < 64) first = Buffer.concat([first, chunk]).subarray(0, 64);
    size += chunk.length;
  });
  const closed = once(stream, "close");
  stream.resume();
  for (let at = 0; at < bytes.length && stream.writable; at += piece) {
    if (!stream.write(bytes.subarray(at, at + piece))) await Promise.race([once(stream, "drain"), closed]);
    if (piece < bytes.length) await new Promise((resolve) => setImmediate(resolve));
  }
  stream.end();
  await closed;
  return `${size} bytes, ${sum.digest("hex")}, ${first.toString("hex")}`;
}

/** Past the answer's head; the socket holds what follows it. */
async function upgraded(socket: Socket): Promise<Socket> {
  socket.on("error", () => undefined);
  socket.write(ASK);
  let text = "";
  while (!text.includes("\r\n\r\n")) {
    const [chunk] = (await once(socket, "data")) as [Buffer]; // no encoding is set
    text += chunk.toString("latin1");
  }
  assert.match(text, /^HTTP\/1\.1 101 [^]*s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  socket.pause();
  const end = text.indexOf("\r\n\r\n") + 4;
  if (end < text.length) socket.unshift(Buffer.from(text.slice(end), "latin1"));
  return socket;
}

test("every conversation goes both ways byte for byte, over each way to open one", async (t) => {
  const { direct, plain, secure, ca } = await stage(t);
  const session = await connectHttp2(`https://127.0.0.1:${secure}`, { ca, servername: "chat.test" });
  t.after(() => void session.destroy());
  const extended = async (): Promise<Duplex> => {
    const stream = session.request({
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "https",
      ":authority": "chat.test",
      ":path": "/chat",
      "sec-websocket-version": "13",
    });
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>]; // as the event is declared
    assert.equal(headers[":status"], 200);
    return stream;
  };
  const tls = async (): Promise<Duplex> => {
    const socket = connectTls({ port: secure, host: "127.0.0.1", ca, servername: "chat.test" });
    await once(socket, "secureConnect");
    return upgraded(socket);
  };
  const tcp = (port: number): Promise<Duplex> => upgraded(connect({ port, host: "127.0.0.1", allowHalfOpen: true }));
  for (const each of CONVERSATIONS) {
    await t.test(each.name, { timeout: 60_000 }, async () => {
      const wanted = await converse(await tcp(direct), each);
      assert.doesNotMatch(wanted, /^0 bytes/, "the server has nothing to say");
      assert.equal(await converse(await tcp(plain), each), wanted, "over HTTP/1.1");
      assert.equal(await converse(await tls(), each), wanted, "behind TLS");
      assert.equal(await converse(await extended(), each), wanted, "over HTTP/2");
    });
  }
});

test("a client that compresses, chooses a protocol and closes with a reason is understood", async (t) => {
  const { plain, secure, ca } = await stage(t, true);
  for (const [url, options] of [
    [`ws://127.0.0.1:${plain}/`, {}],
    [`wss://127.0.0.1:${secure}/`, { ca, servername: "chat.test" }],
  ] as const) {
    const client = new WebSocket(url, ["chat.v1", "chat.v2"], { ...options, perMessageDeflate: true });
    t.after(() => client.terminate());
    await once(client, "open");
    assert.equal(client.protocol, "chat.v2");
    assert.match(client.extensions, /permessage-deflate/);
    for (const text of ["", "short", "long ".repeat(200_000)]) {
      client.send(text);
      const [data, binary] = (await once(client, "message")) as [Buffer, boolean]; // as the event is declared
      assert.deepEqual([data.toString(), binary], [text, false]);
    }
    client.ping(Buffer.from("there?"));
    const [payload] = (await once(client, "pong")) as [Buffer]; // as the event is declared
    assert.equal(payload.toString(), "there?");
    client.close(4001, "enough");
    const [code, reason] = (await once(client, "close")) as [number, Buffer]; // as the event is declared
    assert.deepEqual([code, reason.toString()], [4001, "enough"]);
  }
});
