import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BackendTlsSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { OwnListeners } from "../../../../src/lib/network/own-listeners.ts";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import { tlsOptions } from "../../../../src/proxy/upstream/dial/tls.ts";
import type { JwksRequest } from "../../../../src/sources/remote/documents.ts";
import { fetchDocument } from "../../../../src/sources/remote/fetch-document.ts";
import { validNow } from "../../../support/servers/tls-upstream.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(t: TestContext, server: Server, path?: string): Promise<number> {
  await new Promise<void>((resolve) =>
    path === undefined ? server.listen(0, "127.0.0.1", resolve) : server.listen(path, resolve),
  );
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return path === undefined ? (server.address() as AddressInfo).port : 0;
}

function fetchFrom(url: string, port: number, more: Partial<JwksRequest> = {}, timeoutMs = 60_000): Promise<string> {
  const wanted = { key: "k", url, tls: undefined, addresses: [], cacheMs: 1, ...more };
  const place = more.addresses?.[0] ?? { host: "127.0.0.1", port, unixPath: "" };
  return fetchDocument(wanted, place, new AbortController().signal, { tlsOptions, timeoutMs });
}

test("the path of the URL is asked for under its own host name", async (t) => {
  const seen: string[] = [];
  const handler: Handler = ({ url, headers, method }, response) => {
    seen.push(`${method} ${headers.host}${url}`);
    response.end("a document");
  };
  const port = await serve(t, createServer(handler));
  assert.equal(await fetchFrom("http://keys.test:8080/a%20b/certs", port), "a document");
  assert.deepEqual(seen, ["GET keys.test:8080/a%20b/certs"]);
});

test("what is wanted may have limits of its own, for the connection and for all of it", async (t) => {
  const port = await serve(
    t,
    createServer(() => undefined),
  );
  await assert.rejects(fetchFrom("http://k/", port, { timeoutMs: 50 }), /no whole answer within 50 ms/);
  // Connected in time, it has all of the other limit.
  const slow = { connectTimeoutMs: 20_000, timeoutMs: 50 };
  await assert.rejects(fetchFrom("http://k/", port, slow), /no whole answer within 50 ms/);
  const silent = createTcpServer(() => undefined);
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  const { port: mute } = silent.address() as AddressInfo;
  const tls = create(BackendTlsSchema, {});
  const early = fetchFrom("https://k/", mute, { tls, connectTimeoutMs: 50 });
  await assert.rejects(early, /no connection within 50 ms/);
});

test("only a whole answer with status 200 counts: no redirect, no error, nothing cut, nothing endless", async (t) => {
  const handlers: Record<string, Handler> = {
    "/moved": (_request, response) => response.writeHead(302, { location: "/here" }).end("moved"),
    "/failed": (_request, response) => response.writeHead(503).end("busy"),
    "/cut": (_request, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half");
      setImmediate(() => response.destroy());
    },
    "/huge": (_request, response) => response.end(Buffer.alloc(600_000)),
    "/silent": () => undefined,
    "/slow": (_request, response) => response.write("begun"),
  };
  const port = await serve(
    t,
    createServer((request, response) => handlers[request.url ?? ""]?.(request, response)),
  );
  await assert.rejects(fetchFrom("http://k/moved", port), /answered 302/);
  await assert.rejects(fetchFrom("http://k/failed", port), /answered 503/);
  await assert.rejects(fetchFrom("http://k/cut", port), /aborted|broke off/);
  await assert.rejects(fetchFrom("http://k/huge", port), /larger than 524288 bytes/);
  await assert.rejects(fetchFrom("http://k/silent", port, {}, 50), /no whole answer within 50 ms/);
  await assert.rejects(fetchFrom("http://k/slow", port, {}, 50), /no whole answer within 50 ms/);
});

test("garbage, and nobody there, are failures with a readable reason", async (t) => {
  const garbage = createTcpServer((socket) => socket.end("SSH-2.0-OpenSSH\r\n"));
  await new Promise<void>((resolve) => garbage.listen(0, "127.0.0.1", resolve));
  t.after(() => garbage.close());
  await assert.rejects(fetchFrom("http://k/", (garbage.address() as AddressInfo).port), /Parse Error|Expected HTTP/);
  const gone = createTcpServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  await assert.rejects(fetchFrom("http://k/", port), /ECONNREFUSED/);
});

test("a Unix socket is dialled in place of the host", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-fetch-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "keys.sock");
  await serve(
    t,
    createServer((_request, response) => response.end("by socket")),
    path,
  );
  const addresses = [{ host: "", port: 0, unixPath: path }];
  assert.equal(await fetchFrom("http://localhost/", 0, { addresses }), "by socket");
});

test("TLS goes by the settings: authority, name, and nothing is trusted without them", async (t) => {
  const authority = createAuthority("keys authority", validNow());
  const { certificate, key } = createLeaf(authority, ["keys.test"], validNow());
  const server = createTlsServer({ cert: certificate, key }, (_request, response) => response.end("secured"));
  const port = await serve(t, server);
  const tls = (settings: MessageInitShape<typeof BackendTlsSchema>) => ({ tls: create(BackendTlsSchema, settings) });
  const trusted = tls({ caPem: authority.certificate, alpn: ["h2"] });
  assert.equal(await fetchFrom("https://keys.test/", port, trusted), "secured");
  await assert.rejects(fetchFrom("https://other.test/", port, trusted), /other\.test/);
  await assert.rejects(fetchFrom("https://keys.test/", port, tls({})), /certificate/);
  await assert.rejects(fetchFrom("https://keys.test/", port, tls({ trustNothing: true })), /certificate/);
  await assert.rejects(fetchFrom("http://keys.test/", port), /hang up|Parse Error|ECONNRESET/);
});

test("nothing is fetched from an address that is refused, whatever leads there", async (t) => {
  let asked = 0;
  const port = await serve(
    t,
    createServer((_request, response) => void response.end(String(++asked))),
  );
  const listeners = new OwnListeners();
  listeners.add({ address: "127.0.0.1", port });
  const refuses = listeners.includes.bind(listeners);
  for (const host of ["127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1", "127.1", "2130706433", "0x7f000001"]) {
    const wanted = { key: "k", url: "http://keys.test/", tls: undefined, addresses: [], cacheMs: 1 };
    const place = { host, port, unixPath: "" };
    const { signal } = new AbortController();
    const fetched = fetchDocument(wanted, place, signal, { tlsOptions, timeoutMs: 60_000, refuses });
    await assert.rejects(fetched, /the address is on this machine/, host);
    const free = fetchDocument(wanted, place, signal, { tlsOptions, timeoutMs: 60_000 });
    await assert.doesNotReject(free, host);
  }
  assert.equal(asked, 7);
});
