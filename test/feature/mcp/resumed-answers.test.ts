/** Answers of an MCP server whose stream breaks off: they are fetched by `Last-Event-ID`, unseen by the client. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { askMcp } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}';
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}';

interface Script {
  /** Events that answer the POST; its stream then ends. */
  readonly first: string;
  /** Answers each GET: the events of a stream, or a status. */
  readonly later: readonly (string | number)[];
}

interface Outcome {
  readonly answer: Awaited<ReturnType<typeof askMcp>>;
  /** Last-Event-ID of each GET. */
  readonly askedAfter: readonly (string | undefined)[];
}

/** Calls a tool of a server that answers by a script. */
async function callTool(context: Pick<ProofContext, "after">, { first, later }: Script): Promise<Outcome> {
  const askedAfter: (string | undefined)[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    const isPost = request.method === "POST";
    const step = isPost ? first : (later[askedAfter.length] ?? 405);
    if (!isPost) askedAfter.push(request.headers["last-event-id"]?.toString());
    if (typeof step === "number") return void response.writeHead(step).end();
    response.writeHead(200, { "content-type": "text/event-stream" }).end(step);
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
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("tools", "tools")));
  const answer = await askMcp(`${gateway.url()}/mcp`, "tools/call", { name: "slow", arguments: {} });
  return { answer, askedAfter };
}

function event(id: string, data: string): string {
  return `id: ${id}\nretry: 1\ndata: ${data}\n\n`;
}

test("a stream that ends early is asked for again after its last event", async (context) => {
  const { answer, askedAfter } = await callTool(context, {
    first: event("a1", ""),
    later: [event("a2", PROGRESS), "", event("a3", RESULT)],
  });
  assert.deepEqual(answer.result, { content: [] });
  assert.equal(answer.body.split("notifications/progress").length, 2, "what was said meanwhile arrives once");
  assert.deepEqual(askedAfter, ["a1", "a2", "a2"]);
});

test("the connection of an answered call serves the next one, although its stream ends later", async (t) => {
  let connections = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${RESULT}\n\n`);
      setImmediate(() => response.end(": bye\n\n"));
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  // A TCP server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo;
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
  const gateway = await startGateway(t, documents(GATEWAY, backend, route("tools", "tools")));
  for (let at = 0; at < 10; at++) {
    const answer = await askMcp(`${gateway.url()}/mcp`, "tools/call", { name: "slow", arguments: {} });
    assert.deepEqual(answer.result, { content: [] });
  }
  assert.ok(connections < 5, `${connections} connections`);
});

const BROKEN: readonly (readonly [title: string, script: Script, askedAfter: readonly string[]])[] = [
  ["has no event ids", { first: `data: ${PROGRESS}\n\n`, later: [event("a1", RESULT)] }, []],
  ["cannot be resumed", { first: event("a1", ""), later: [405] }, ["a1"]],
  [
    "breaks off again and again",
    { first: event("a1", ""), later: ["a2", "a3", "a4", "a5", "a6", "a7"].map((id) => event(id, "")) },
    ["a1", "a2", "a3", "a4", "a5"],
  ],
  ["asks for a wait that is too long", { first: "id: a1\nretry: 60000\ndata: \n\n", later: [event("a2", RESULT)] }, []],
];
for (const [title, script, expected] of BROKEN)
  test(`the client gets an error when the stream ${title}`, async (context) => {
    const { answer, askedAfter } = await callTool(context, script);
    assert.deepEqual(answer.error, { code: -32603, message: "the server ended its stream without an answer" });
    assert.deepEqual(askedAfter, expected);
  });
