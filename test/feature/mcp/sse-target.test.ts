/** Clients of Streamable HTTP use servers of HTTP+SSE (2024-11-05) through the gateway. */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { BackendSchema, McpBackendSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { connectMcp, INITIALIZE, post } from "../../support/clients/mcp.ts";
import { listener, route as irRoute, to } from "../../support/gateway/data-plane.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "../../support/gateway/gateway.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startSseMcpServer } from "../../support/servers/sse-mcp-server.ts";

const PROTOCOL = "GwBackend spec.mcp.targets[].static.protocol";

function startSse(context: ProofContext, port: number): Promise<TestGateway> {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp:
    targets: [{name: one, static: {host: 127.0.0.1, port: ${port}, protocol: SSE}}]
`;
  return startGateway(context, documents(GATEWAY, backend, route("tools", "tools")));
}

prove(
  PROTOCOL,
  "calls, progress and questions of the server pass, and the end of the session closes its stream",
  async (context) => {
    const server = await startSseMcpServer(context);
    const gateway = await startSse(context, server.port);
    const { client, transport } = await connectMcp(context, `${gateway.url()}/mcp`, (each) => {
      each.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home" }] }));
    });
    assert.deepEqual(server.calls.slice(0, 3), ["GET /sse", "POST /messages", "POST /messages"]);
    const calls = ["a", "b", "c"].map((text) => client.callTool({ name: "echo", arguments: { text } }));
    const answers = await Promise.all(calls);
    assert.deepEqual(
      answers.map(({ content }) => content),
      ["a", "b", "c"].map((text) => [{ type: "text", text: `test: ${text}` }]),
    );
    const seen: number[] = [];
    await client.callTool({ name: "count", arguments: { to: 3 } }, undefined, {
      onprogress: ({ progress }) => void seen.push(progress),
    });
    assert.deepEqual(seen, [1, 2, 3]);
    const asked = await client.callTool({ name: "ask", arguments: {} });
    assert.deepEqual(asked.content, [{ type: "text", text: "file:///home" }]);
    assert.equal(server.open(), 1);
    await transport.terminateSession();
    while (server.open() > 0) await new Promise(setImmediate);
  },
);

prove(PROTOCOL, "a session whose stream was cut is entered anew", async (context) => {
  const server = await startSseMcpServer(context);
  const gateway = await startSse(context, server.port);
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
  server.cut();
  while (server.open() > 0) await new Promise(setImmediate);
  const called = await client.callTool({ name: "echo", arguments: { text: "again" } });
  assert.deepEqual(called.content, [{ type: "text", text: "test: again" }]);
});

test("threads share the stream of a session, so that each answer reaches the question", async (t) => {
  const server = await startSseMcpServer(t);
  const plane = await startWorkers(t, resources(server.port));
  const fetchAlone: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    // Each request has a connection of its own, which either thread may get.
    headers.set("connection", "close");
    return fetch(input, { ...init, headers });
  };
  const { client, transport } = await connectMcp(
    t,
    `${plane.url}/mcp`,
    (each) => each.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home" }] })),
    { fetch: fetchAlone },
  );
  for (let at = 0; at < 12; at++) {
    const asked = await client.callTool({ name: "ask", arguments: {} });
    assert.deepEqual(asked.content, [{ type: "text", text: "file:///home" }]);
  }
  const calls = Array.from({ length: 30 }, () => client.callTool({ name: "echo", arguments: { text: "a" } }));
  for (const { content } of await Promise.all(calls)) assert.deepEqual(content, [{ type: "text", text: "test: a" }]);
  assert.equal(server.calls.filter((each) => each === "GET /sse").length, 1);
  server.cut();
  while (server.open() > 0) await new Promise(setImmediate);
  for (let at = 0; at < 12; at++) {
    const asked = await client.callTool({ name: "ask", arguments: {} });
    assert.deepEqual(asked.content, [{ type: "text", text: "file:///home" }]);
  }
  assert.equal(server.open(), 1);
  await transport.terminateSession();
  while (server.open() > 0) await new Promise(setImmediate);
});

function resources(port: number): Resource[] {
  const place = { case: "static", value: { host: "127.0.0.1", port } } as const;
  const mcp = create(McpBackendSchema, { targets: [{ name: "one", path: "/sse", place, legacySse: true }] });
  const backend = create(BackendSchema, { key: "backend/default/tools", kind: { case: "mcp", value: mcp } });
  return [listener(), irRoute("r", [to("tools")]), resourceOf("Backend", backend)];
}

/** Endpoint events, and what the posts to them end with. */
const BROKEN = [
  ["an address on another origin", "http://elsewhere.example/messages"],
  ["an address of another scheme", "file:///messages"],
  ["a stream that is cut before the answer", "/messages"],
] as const;

for (const [title, address] of BROKEN)
  prove(PROTOCOL, `${title} ends in an internal error`, async (context) => {
    const paths: string[] = [];
    const streams: ServerResponse[] = [];
    const http = createServer((request, response) => {
      paths.push(`${request.method} ${request.url}`);
      if (request.method === "POST") {
        response.writeHead(202).end("Accepted");
        // The gateway never asked for this response.
        streams[0]?.end('event: message\ndata: {"jsonrpc":"2.0","id":99,"result":{}}\n\n');
        return;
      }
      streams.push(response);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: endpoint\ndata: ${address}\n\n`);
    });
    await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
    context.after(() => {
      http.close();
      http.closeAllConnections();
    });
    const gateway = await startSse(context, (http.address() as AddressInfo).port);
    const answer = await post(`${gateway.url()}/mcp`, INITIALIZE);
    assert.equal(answer.status, 500, answer.body);
    assert.match(answer.body, /-32603/);
    assert.deepEqual(paths, address.startsWith("/") ? ["GET /sse", "POST /messages"] : ["GET /sse"]);
  });
