/** The RequestMirror filter: what a copy holds, how many there are, and that a client never notices. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { startEcho, type Echo } from "../../support/servers/echo.ts";
import { documents, GATEWAY, startGateway, staticBackend, type TestGateway } from "../../support/gateway/gateway.ts";
import { startSocket } from "../../support/servers/grpc.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

interface Setup {
  readonly gateway: TestGateway;
  readonly main: Echo;
  readonly copies: Echo;
}

/** @param mirror fields of requestMirror beside the backendRef @param place of the filter */
async function setUp(t: TestContext, mirror: string, place: "rule" | "backendRef" = "rule"): Promise<Setup> {
  const context = { after: (clean: () => void) => t.after(clean) };
  const [main, copies] = [await startEcho(context), await startEcho(context, { tag: "copy" })];
  const objects = documents(
    GATEWAY,
    staticBackend("main", main.port),
    staticBackend("copies", copies.port),
    mirrored(mirror, place),
  );
  return { gateway: await startGateway(context, objects), main, copies };
}

function mirrored(mirror: string, place: "rule" | "backendRef" = "rule", name = "copies"): string {
  const filters = `filters:
        - type: RequestMirror
          requestMirror: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}${mirror}}
`;
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules:
    - backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: main${place === "backendRef" ? `, ${flow(mirror, name)}` : ""}}]
      ${place === "rule" ? filters : ""}
`;
}

function flow(mirror: string, name: string): string {
  const to = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: ${name}}${mirror}}`;
  return `filters: [{type: RequestMirror, requestMirror: ${to}}]`;
}

/** Resolves when the echo has seen so many requests. */
async function seen(echo: Echo, count: number): Promise<void> {
  while (echo.seen.length < count) await new Promise((resolve) => setImmediate(resolve));
}

test("a copy has the method, the path, the headers and the body of its request, and its answer goes nowhere", async (t) => {
  for (const place of ["rule", "backendRef"] as const) {
    const { gateway, main, copies } = await setUp(t, "", place);
    const body = "x".repeat(100_000);
    const answer = await fetch(`${gateway.url()}/items?a=b`, { method: "PUT", body, headers: { "x-own": "1" } });
    assert.equal(answer.headers.get("x-upstream"), "echo");
    await answer.text();
    await seen(copies, 1);
    const [copy] = copies.seen;
    const [original] = main.seen;
    assert.equal(copy?.body, body);
    assert.deepEqual([copy.method, copy.url], ["PUT", "/items?a=b"]);
    assert.deepEqual({ ...copy.headers, host: "" }, { ...original?.headers, host: "" });
    await (await fetch(gateway.url())).text();
    await seen(copies, 2);
  }
});

test("a percentage or a fraction says how many requests are copied", async (t) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  const [main, copies] = [await startEcho(context), await startEcho(context, { tag: "copy" })];
  const backends = [staticBackend("main", main.port), staticBackend("copies", copies.port)];
  const gateway = await startGateway(context, documents(GATEWAY, ...backends, mirrored("")));
  const count = async (mirror: string): Promise<number> => {
    await gateway.change(documents(GATEWAY, ...backends, mirrored(mirror)));
    const before = copies.seen.length;
    for (let at = 0; at < 200; at++) await (await fetch(gateway.url())).text();
    await gateway.change(documents(GATEWAY, ...backends, mirrored(", percent: 100")));
    await (await fetch(`${gateway.url()}/last`)).text();
    while (copies.seen.at(-1)?.url !== "/last") await new Promise((resolve) => setImmediate(resolve));
    return copies.seen.length - before - 1;
  };
  assert.equal(await count(", percent: 0"), 0);
  assert.equal(await count(", percent: 100"), 200);
  const half = await count(", fraction: {numerator: 1, denominator: 2}");
  assert.ok(half > 50 && half < 150, `${half} of 200`);
});

test("a backend of copies that answers errors, hangs or is gone changes nothing for the client", async (t) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  const main = await startEcho(context);
  const failing = await startUpstream((_request, response) => void response.writeHead(500).end());
  t.after(() => failing.close());
  const silent = await startSocket(context);
  for (const port of [failing.port, silent, 1]) {
    const objects = documents(GATEWAY, staticBackend("main", main.port), staticBackend("copies", port), mirrored(""));
    const gateway = await startGateway(context, objects);
    const answer = await fetch(gateway.url(), { method: "POST", body: "hello" });
    assert.equal(answer.status, 200);
    await answer.text();
  }
});

test("a copy that falls too far behind breaks off, and the upload goes on at its own pace", async (t) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  let received = 0;
  const main = await startUpstream((request, response) => {
    request.on("data", (chunk: Buffer) => (received += chunk.length));
    request.on("end", () => response.end("done"));
  });
  t.after(() => main.close());
  const broken = Promise.withResolvers<void>();
  const sockets: Socket[] = [];
  const silent = await startSocket(context, (socket) => {
    socket.pause();
    sockets.push(socket);
    socket.on("close", broken.resolve);
  });
  const objects = documents(GATEWAY, staticBackend("main", main.port), staticBackend("copies", silent), mirrored(""));
  const gateway = await startGateway(context, objects);
  const size = 64 * 1024 * 1024;
  const upload = httpRequest(gateway.url(), { method: "POST" });
  const piece = Buffer.alloc(65_536);
  for (let sent = 0; sent < size; sent += piece.length) {
    if (!upload.write(piece)) await once(upload, "drain");
  }
  upload.end();
  const [response] = (await once(upload, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  response.resume();
  assert.equal(received, size);
  // Read again only to learn of the end: what the system held comes first.
  for (const socket of sockets) socket.resume();
  await broken.promise;
});

test("a mirror that names nothing is said in the status, and the route serves", async (t) => {
  const context = { after: (clean: () => void) => t.after(clean) };
  const main = await startEcho(context);
  const objects = documents(GATEWAY, staticBackend("main", main.port), mirrored("", "rule", "missing"));
  const gateway = await startGateway(context, objects);
  assert.equal((await fetch(gateway.url())).status, 200);
  const messages = gateway.translator.diagnostics().map(({ path, message }) => `${path}: ${message}`);
  assert.deepEqual(messages, [
    "spec.rules[0].filters[0].requestMirror.backendRef: GwBackend default/missing not found",
  ]);
});
