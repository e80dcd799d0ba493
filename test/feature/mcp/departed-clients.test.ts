/** Clients that leave while a server works: up to 2025-11-25 that is no cancellation, and the server goes on unseen. */
import assert from "node:assert/strict";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { INITIALIZE, MCP_HEADERS, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { keepLines, type KeptLines } from "../../support/gateway/log-lines.ts";
import { createMeasured } from "../../support/gateway/measured.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";

const CALL = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "work", arguments: {} } };
const RESULT = '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}';
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}';

interface Working {
  readonly url: string;
  readonly lines: KeptLines;
  /** Resolves with the answer to the next call of the tool, which the test writes. */
  nextCall(): Promise<ServerResponse>;
  /** Methods that reached the server. */
  readonly seen: readonly string[];
}

/** Starts a server whose tool answers when the test says so, behind a gateway. */
async function start(context: ProofContext, routing = "Stateful"): Promise<Working> {
  const seen: string[] = [];
  const calls: ServerResponse[] = [];
  let arrived = Promise.withResolvers<void>();
  const server = createServer((incoming, response) => {
    let text = "";
    incoming.on("data", (chunk: Buffer) => (text += chunk.toString()));
    incoming.on("end", () => {
      const { id, method = "" } = text === "" ? {} : (JSON.parse(text) as { id?: unknown; method?: string });
      seen.push(method || (incoming.method ?? ""));
      if (method === "tools/call") {
        calls.push(response);
        return arrived.resolve();
      }
      if (id === undefined) return void response.writeHead(202).end();
      const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } };
      response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "own" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: method === "initialize" ? result : {} }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  // A TCP server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo;
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {sessionRouting: ${routing}, targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
  const lines = keepLines(context);
  const telemetry = { accessLog: lines.accessLog, metrics: createMeasured().metrics };
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("tools", "tools")), { telemetry });
  return {
    url: `${gateway.url()}/mcp`,
    lines,
    seen,
    async nextCall() {
      for (;;) {
        const call = calls.shift();
        if (call !== undefined) return call;
        arrived = Promise.withResolvers();
        await arrived.promise;
      }
    },
  };
}

/** Posts a call whose client can leave. */
function postCall(url: string, headers: Readonly<Record<string, string>>) {
  const outgoing = request(url, { method: "POST", headers: { ...MCP_HEADERS, ...headers }, agent: false });
  // Its own end is no failure.
  outgoing.on("error", () => undefined);
  const begun = new Promise<void>((resolve) => {
    outgoing.on("response", (response) => response.once("data", () => resolve()));
  });
  outgoing.end(JSON.stringify(CALL));
  return { begun, leave: () => outgoing.destroy() };
}

async function untilLeft({ nextFields }: KeptLines): Promise<void> {
  while ((await nextFields())["reason"] !== "ClientClosed");
}

/** Resolves with whether the answer was taken to its end. */
function finished(response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => response.on("close", () => resolve(response.writableFinished)));
}

for (const [what, hasBegun] of [
  ["before anything was said", false],
  ["in the middle of a stream", true],
] as const)
  test(`a client that leaves ${what} has not cancelled its call`, async (t) => {
    const { url, lines, nextCall, seen } = await start(t);
    const { headers } = await post(url, INITIALIZE);
    const session = { "mcp-session-id": String(headers["mcp-session-id"]) };
    const client = postCall(url, session);
    const answer = await nextCall();
    const isWhole = finished(answer);
    if (hasBegun) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(`data: ${PROGRESS}\n\n`);
      await client.begun;
    }
    client.leave();
    await untilLeft(lines);
    // The server would see a cut connection no later than this request.
    assert.equal((await post(url, { jsonrpc: "2.0", id: 3, method: "ping" }, session)).status, 200);
    assert.equal(answer.destroyed, false);
    if (!hasBegun) answer.writeHead(200, { "content-type": "text/event-stream" });
    // More than the buffers in between hold: it is read although no client takes it.
    for (let at = 0; at < 64; at++) answer.write(`data: ${PROGRESS.replace('"x"', `"${"x".repeat(16_384)}"`)}\n\n`);
    answer.end(`data: ${RESULT}\n\n`);
    assert.equal(await isWhole, true);
    assert.ok(!seen.includes("notifications/cancelled"));
  });

test("what a server says without a reader is bounded", async (t) => {
  const { url, lines, nextCall } = await start(t);
  const { headers } = await post(url, INITIALIZE);
  const client = postCall(url, { "mcp-session-id": String(headers["mcp-session-id"]) });
  const answer = await nextCall();
  const isWhole = finished(answer);
  client.leave();
  await untilLeft(lines);
  answer.writeHead(200, { "content-type": "text/event-stream" });
  const event = `data: ${PROGRESS.replace('"x"', `"${"x".repeat(262_144)}"`)}\n\n`;
  const write = (): void => {
    while (!answer.destroyed && answer.write(event));
  };
  answer.on("drain", write);
  write();
  assert.equal(await isWhole, false);
});

test("without sessions the server's is left when the call has ended, not when the client leaves", async (t) => {
  const { url, lines, nextCall, seen } = await start(t, "Stateless");
  const client = postCall(url, { "mcp-protocol-version": "2025-11-25" });
  const answer = await nextCall();
  const isWhole = finished(answer);
  client.leave();
  await untilLeft(lines);
  assert.ok(!seen.includes("DELETE"));
  answer.writeHead(200, { "content-type": "application/json" });
  answer.end(RESULT);
  assert.equal(await isWhole, true);
  while (!seen.includes("DELETE")) await new Promise(setImmediate);
});
