/** The limits of a listener without settings and the forms of requests, as honest clients meet them. */
import assert from "node:assert/strict";
import type { IncomingMessage, RequestListener } from "node:http";
import { test, type TestContext } from "node:test";
import { listener, rawClient, route, startDataPlane, staticBackend, to } from "../../support/gateway/data-plane.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { startRawUpstream, startUpstream } from "../../support/servers/upstream.ts";

interface Served {
  readonly port: number;
  readonly url: string;
  readonly requests: readonly IncomingMessage[];
}

async function serve(t: TestContext, answer: RequestListener): Promise<Served> {
  const upstream = await startUpstream(answer);
  const started = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  t.after(async () => {
    started.proxy.close();
    await upstream.close();
  });
  return { port: started.port, url: started.url, requests: upstream.requests };
}

const ok: RequestListener = (_request, response) => void response.end("ok");

/** The first line of the answer on a connection of its own. */
async function statusOf(t: TestContext, port: number, bytes: string): Promise<number> {
  const client = rawClient(port, bytes);
  t.after(() => void client.socket.destroy());
  const [, status] = await client.until(/^HTTP\/1\.1 (\d{3}) /);
  return Number(status);
}

/** @param fields Host included */
const withFields = (fields: number): string =>
  `GET / HTTP/1.1\r\nHost: a\r\n${Array.from({ length: fields - 1 }, (_none, at) => `x-${at}: 1\r\n`).join("")}\r\n`;
const withBlock = (bytes: number): string => `GET / HTTP/1.1\r\nHost: a\r\nx: ${"y".repeat(bytes)}\r\n\r\n`;

test("a head of HTTP/1 has 100 fields and 64 KiB at most", async (t) => {
  let requests = 0;
  // A server of node would refuse what is large itself.
  const upstream = await startRawUpstream((socket) => {
    socket.on("data", (chunk: Buffer) => {
      if (!chunk.includes("\r\n\r\n")) return;
      requests++;
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  const { port, proxy } = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", upstream.port)]);
  t.after(async () => {
    proxy.close();
    await upstream.close();
  });
  assert.equal(await statusOf(t, port, withFields(100)), 200);
  assert.equal(await statusOf(t, port, withFields(101)), 431);
  assert.equal(await statusOf(t, port, withBlock(64_000)), 200);
  assert.equal(await statusOf(t, port, withBlock(65_536)), 431);
  assert.equal(requests, 2);
});

test("HTTP/2 announces its limits, and a head within them may have many fields", async (t) => {
  const { url, requests } = await serve(t, ok);
  const session = await connectHttp2(url);
  t.after(() => void session.destroy());
  const many = Object.fromEntries(Array.from({ length: 300 }, (_none, at) => [`x-${at}`, "1"]));
  assert.equal((await sendHttp2(session, { ":path": "/", ...many })).status, 200);
  const { initialWindowSize, maxConcurrentStreams, maxFrameSize, maxHeaderListSize } = session.remoteSettings;
  assert.deepEqual(
    [initialWindowSize, maxConcurrentStreams, maxFrameSize, maxHeaderListSize],
    [1_048_576, 200, 16_384, 16_384],
  );
  assert.equal(session.state.remoteWindowSize, 16_777_216);
  await assert.rejects(sendHttp2(session, { ":path": "/", x: "y".repeat(16_384) }));
  assert.equal(requests.length, 1);
});

test("a client of HTTP/1.0 gets a length or the end of the connection, and never chunks", async (t) => {
  const heard = Promise.withResolvers<void>();
  const { port, requests } = await serve(t, (request, response) => {
    if (request.url === "/known") response.end("ok");
    else {
      response.write("in ");
      void heard.promise.then(() => response.end("pieces"));
    }
  });
  const known = await rawClient(port, "GET /known HTTP/1.0\r\nHost: a\r\n\r\n").closed();
  assert.match(known, /^HTTP\/1\.1 200 OK\r\n[^]*content-length: 2\r\n[^]*\r\n\r\nok$/i);
  const client = rawClient(port, "GET /unknown HTTP/1.0\r\nHost: a\r\n\r\n");
  await client.until(/\r\n\r\nin $/);
  heard.resolve();
  const unknown = await client.closed();
  assert.doesNotMatch(unknown, /transfer-encoding/i);
  assert.match(unknown, /^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n(?:[^]*\r\n)?\r\nin pieces$/i);
  // Towards the upstream it is a request of our own version.
  assert.deepEqual(
    requests.map(({ httpVersion }) => httpVersion),
    ["1.1", "1.1"],
  );
});

test("the authority of an absolute target beats Host, and its path is the path", async (t) => {
  const { port, requests } = await serve(t, ok);
  const targets = ["http://one.test:81/a?b=c", "HTTP://one.test:81", "http://one.test:81?b=c"];
  for (const target of targets)
    assert.equal(await statusOf(t, port, `GET ${target} HTTP/1.1\r\nHost: two.test\r\n\r\n`), 200);
  assert.deepEqual(
    requests.map(({ url, headers }) => [url, headers.host, headers["x-forwarded-host"]]),
    ["/a?b=c", "/", "/?b=c"].map((path) => [path, "one.test:81", "one.test:81"]),
  );
});

test("fields of the connection stay behind, in both directions", async (t) => {
  const hops = {
    connection: "close, x-own",
    "x-own": "1",
    "keep-alive": "timeout=9",
    "proxy-connection": "close",
    "proxy-authenticate": "Basic",
    upgrade: "bytes",
  };
  const { port, requests } = await serve(t, (_request, response) => {
    response.writeHead(200, { ...hops, "content-length": "2", te: "deflate", "x-kept": "1" });
    response.end("ok");
  });
  const fields = Object.entries({
    ...hops,
    te: "deflate;q=0.5, trailers",
    "proxy-authorization": "Basic x",
    "x-kept": "1",
  });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const answer = await rawClient(port, `GET / HTTP/1.1\r\nHost: a\r\n${head}\r\n`).closed();
  const gone = [
    "x-own",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "trailer",
    "upgrade",
  ];
  const [seen] = requests;
  assert.ok(seen);
  for (const name of gone) {
    assert.equal(seen.headers[name], undefined, name);
    assert.doesNotMatch(answer, new RegExp(`^${name}:`, "im"), name);
  }
  assert.deepEqual([seen.headers["x-kept"], seen.headers["te"]], ["1", "trailers"]);
  assert.match(answer, /^x-kept: 1\r$/im);
  assert.doesNotMatch(answer, /^te:/im);
});

test("what Connection names cannot take away who the client is", async (t) => {
  const { port, requests } = await serve(t, ok);
  const named = "host, authorization, cookie, content-length, X-Forwarded-For, x-own";
  const fields = `Connection: ${named}\r\nAuthorization: a\r\nCookie: b=c\r\nX-Own: 1\r\nContent-Length: 2\r\n`;
  assert.equal(await statusOf(t, port, `POST / HTTP/1.1\r\nHost: a.test\r\n${fields}\r\nhi`), 200);
  const { host, authorization, cookie, "content-length": length, "x-own": own } = requests[0]?.headers ?? {};
  assert.deepEqual([host, authorization, cookie, length, own], ["a.test", "a", "b=c", "2", undefined]);
  assert.equal(requests[0]?.headers["x-forwarded-for"], "127.0.0.1");
});
