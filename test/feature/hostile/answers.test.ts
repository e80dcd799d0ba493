/** What an upstream says badly, through a gateway, to clients of both versions; and what the next client gets. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { HttpVersion } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  endpoints,
  listener,
  rawClient,
  route,
  serviceBackend,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { startRawUpstream } from "../../support/servers/upstream.ts";
import { HOSTILE_ANSWERS, type HostileAnswer } from "./answers.ts";

const HONEST = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhonest";

interface Stage {
  readonly port: number;
  /** Connections that the upstream has seen. */
  connections(): number;
}

/** An upstream that speaks the row once, to the first request for /hostile, and honestly to every other. */
async function stage(t: TestContext, row: HostileAnswer): Promise<Stage> {
  let connections = 0;
  const upstream = await startRawUpstream((socket) => {
    connections++;
    socket.on("data", (chunk) => {
      if (!chunk.toString("latin1").includes(" /hostile ")) return void socket.write(HONEST);
      socket.write(row.bytes, "latin1");
      if (row.ends === true) socket.end();
    });
  });
  t.after(() => upstream.close());
  const backend = serviceBackend("backend/default/b", upstream.port, HttpVersion.HTTP1);
  const found = endpoints("backend/default/b", [upstream.port]);
  const plane = await startDataPlane([listener(), route("r", [to("b")]), backend, found]);
  t.after(() => plane.proxy.close());
  return { port: plane.port, connections: () => connections };
}

const request = (path: string, method = "GET", fields = ""): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;

for (const row of HOSTILE_ANSWERS) {
  const { name, outcome, method = "GET", reused = false } = row;
  test(`an upstream that sends ${name} harms nobody`, { timeout: 60_000 }, async (t) => {
    const { port, connections } = await stage(t, row);
    const text = await rawClient(port, request("/hostile", method, "Connection: close\r\n")).closed();
    const answers = [...text.matchAll(/HTTP\/1\.1 /g)].length;
    assert.ok(answers === 1 || (outcome === "cut" && answers === 0), text);
    assert.doesNotMatch(text, /evil|set-cookie|x-hop/i);
    const body = text.slice(text.indexOf("\r\n\r\n") + 4);
    if (outcome === "refused") assert.match(text, /^HTTP\/1\.1 503 [^]*\r\n\r\nupstream call failed$/);
    else if (outcome === "lost") assert.match(text, /^HTTP\/1\.1 503 [^]*\r\n\r\nupstream call failed$/);
    else if (outcome === "cut") {
      assert.match(text, /^(?:$|HTTP\/1\.1 200 )/);
      assert.doesNotMatch(body, /0\r\n\r\n$/);
      const length = /content-length: (\d+)/.exec(text)?.[1];
      if (length !== undefined) assert.ok(body.length < Number(length), "the answer looks complete");
    } else {
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${outcome[0]} `));
      assert.equal(body.replace(/^1\r\n|^3\r\n/, "").replace(/\r\n0\r\n\r\n$/, ""), outcome[1]);
    }
    const before = connections();
    assert.match(await rawClient(port, request("/next", "GET", "Connection: close\r\n")).closed(), /\r\n\r\nhonest$/);
    assert.equal(connections() - before, reused ? 0 : 1);
  });

  test(`and over HTTP/2: ${name}`, { timeout: 60_000 }, async (t) => {
    const { port } = await stage(t, row);
    const session = await connectHttp2(`http://127.0.0.1:${port}`);
    t.after(() => void session.destroy());
    const asked = sendHttp2(session, { ":path": "/hostile", ":authority": "a", ":method": method });
    if (outcome === "cut") await assert.rejects(asked, /stream|closed/i);
    else {
      const { status, body, headers, trailers } = await asked;
      assert.equal(status, outcome === "refused" || outcome === "lost" ? 503 : outcome[0]);
      if (typeof outcome === "object") assert.equal(body.toString(), outcome[1]);
      assert.deepEqual(
        [headers["x-hop"], headers["set-cookie"], trailers["set-cookie"]],
        [undefined, undefined, undefined],
      );
    }
    const { body } = await sendHttp2(session, { ":path": "/next", ":authority": "a" });
    assert.equal(body.toString(), "honest");
  });
}

test("what an upstream says without being asked is nobody's answer", async (t) => {
  const sockets: Socket[] = [];
  const upstream = await startRawUpstream((socket) => {
    sockets.push(socket);
    socket.on("data", () => socket.write(HONEST));
  });
  t.after(() => upstream.close());
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  t.after(() => plane.proxy.close());
  const client = rawClient(plane.port, request("/first"));
  await client.until(/honest$/);
  const [first] = sockets;
  assert.ok(first);
  const closed = new Promise<void>((resolve) => void first.once("close", () => resolve()));
  first.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  await closed;
  client.socket.write(request("/second"));
  await client.until(/honest[^]*honest$/);
  assert.doesNotMatch(client.text(), /evil/);
});
