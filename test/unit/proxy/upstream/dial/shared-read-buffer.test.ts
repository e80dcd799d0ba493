/** What is handed out of an answer belongs to whoever has it, though all upstreams are read into the same memory. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { HeaderList } from "../../../../../src/lib/header-list.ts";
import { createUpstream } from "../../../../../src/proxy/upstream/client/client.ts";
import { PLAIN } from "../../../../../src/proxy/upstream/dial/connection-settings.ts";
import { DestinationGuard } from "../../../../../src/proxy/upstream/dial/destination-guard.ts";
import { createResolver } from "../../../../../src/proxy/upstream/dial/dns.ts";

const PIECES = 40;
const PATHS = ["/chunked/a", "/length/b", "/chunked/c", "/length/d"];

/** Answers `/chunked/x` and `/length/x` with pieces of "x", each written when the one before is out. */
async function open(t: TestContext): Promise<(path: string) => Promise<Buffer[]>> {
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    const piece = Buffer.alloc(700, path.slice(-1));
    if (path.startsWith("/length")) response.setHeader("content-length", PIECES * piece.length);
    const write = (left: number): void => {
      if (left === 0) response.end();
      else response.write(piece, () => setImmediate(write, left - 1));
    };
    write(PIECES);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const resolver = createResolver();
  const upstream = createUpstream({ resolver, guard: new DestinationGuard(), connectTimeoutMs: 5_000 });
  t.after(() => {
    upstream.close();
    resolver.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is one
  const target = { ...PLAIN, host: "127.0.0.1", port, unixPath: "" };
  return async (path) => {
    const limits = { deadlineAtMs: undefined, timeoutCode: "request_timeout" as const };
    const headers = new HeaderList(["host", "a.test"]);
    const { body } = await upstream.send(target, {
      version: "http1",
      method: "GET",
      path,
      headers,
      body: null,
      ...limits,
    });
    assert.ok(body !== null && !Buffer.isBuffer(body));
    const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>();
    const kept: Buffer[] = [];
    body.read({
      data: (chunk) => kept.push(chunk) > 0,
      end: () => resolve(kept),
      error: reject,
    });
    return promise;
  };
}

test("bytes that are kept stay what they were while other answers are read", async (t) => {
  const ask = await open(t);
  const bodies = await Promise.all(PATHS.map(ask));
  for (const [at, path] of PATHS.entries()) {
    const letter = path.slice(-1);
    assert.equal(Buffer.concat(bodies[at] ?? []).toString("latin1"), letter.repeat(PIECES * 700), path);
  }
  assert.ok(
    bodies.some((pieces) => pieces.length > 1),
    "no answer came in several reads",
  );
});
