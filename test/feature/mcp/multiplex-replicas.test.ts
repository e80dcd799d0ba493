/** Two replicas with one key in front of several servers: every message of a session may arrive at either. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import { BackendSchema, McpBackendSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import { MCP_HEADERS } from "../../support/clients/mcp.ts";
import { listener, route as irRoute, to } from "../../support/gateway/data-plane.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { startWorkers } from "../../support/gateway/workers.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly result?: Readonly<Record<string, unknown>>;
}

function withQuestion(server: McpServer): void {
  server.registerTool("confirm", { inputSchema: {} }, async (_input, extra) => {
    const params = { message: "?", requestedSchema: { type: "object" as const, properties: {} } };
    const answer = await extra.sendRequest(
      { method: "elicitation/create", params },
      z.looseObject({ action: z.string() }),
    );
    return { content: [{ type: "text", text: answer.action }] };
  });
}

async function startReplicas(context: ProofContext): Promise<readonly [string, string]> {
  const servers = await Promise.all(
    ["alpha", "beta"].map((name) => startMcpServer(context, { name, configure: withQuestion })),
  );
  const [alpha, beta] = servers.map(({ port }) => `static: {host: 127.0.0.1, port: ${port}}`);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp: {targets: [{name: alpha, ${alpha}}, {name: beta, ${beta}}]}`;
  const manifests = documents(GATEWAY, backend, route("tools", "tools"));
  const sessionKeys = [randomBytes(32).toString("hex")];
  const [first, second] = [
    await startGateway(context, manifests, { sessionKeys }),
    await startGateway(context, manifests, { sessionKeys }),
  ];
  return [`${first.url()}/mcp`, `${second.url()}/mcp`];
}

/** Posts a message and yields the messages of the answer as they arrive. */
async function* post(url: string, session: string, message: object): AsyncGenerator<Message> {
  const response = await fetch(url, {
    method: "POST",
    // Each request has a connection of its own, which either thread may get.
    headers: { ...MCP_HEADERS, connection: "close", ...(session === "" ? {} : { "mcp-session-id": session }) },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });
  assert.ok(response.ok, `status ${response.status}`);
  const issued = response.headers.get("mcp-session-id");
  if (issued !== null) yield { id: issued };
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) yield (await response.json()) as Message;
  if (!type.startsWith("text/event-stream") || response.body === null) return;
  let text = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (text + chunk).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data !== undefined) yield JSON.parse(data) as Message;
    }
  }
}

async function postOnly(url: string, session: string, message: object): Promise<Message | undefined> {
  let last: Message | undefined;
  for await (const each of post(url, session, message)) last = each;
  return last;
}

async function begin(url: string): Promise<string> {
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "raw", version: "1" },
  };
  const { value } = await post(url, "", { id: 1, method: "initialize", params }).next();
  await postOnly(url, String(value?.id), { method: "notifications/initialized" });
  return String(value?.id);
}

test("a question that a server asks through one replica is answered through the other", async (context) => {
  const [first, second] = await startReplicas(context);
  const session = await begin(first);
  for (const [asked, answered] of [
    [first, second],
    [second, first],
  ] as const) {
    const params = { name: "beta_confirm", arguments: {} };
    const stream = post(asked, session, { id: 2, method: "tools/call", params });
    const { value: question } = await stream.next();
    assert.equal(question?.method, "elicitation/create");
    await postOnly(answered, session, { id: question.id, result: { action: "accept" } });
    const { value: response } = await stream.next();
    assert.deepEqual(response?.result?.["content"], [{ type: "text", text: "accept" }]);
  }
});

test("none of 60 requests fails that replicas get in turns", async (context) => {
  const replicas = await startReplicas(context);
  const session = await begin(replicas[0]);
  for (let id = 2; id < 62; id++) {
    const name = id % 3 === 0 ? "alpha_echo" : "beta_echo";
    const request = { id, method: "tools/call", params: { name, arguments: { text: `${id}` } } };
    const response = await postOnly(replicas[id % 2 === 0 ? 0 : 1], session, request);
    assert.deepEqual(response?.result?.["content"], [{ type: "text", text: `${name.split("_")[0]}: ${id}` }]);
  }
});

test("the threads of one gateway serve one session of several servers, and answers find their questions", async (t) => {
  const servers = await Promise.all(
    ["alpha", "beta"].map((name) => startMcpServer(t, { name, configure: withQuestion })),
  );
  const targets = servers.map(({ port }, at) => ({
    name: at === 0 ? "alpha" : "beta",
    path: "/mcp",
    place: { case: "static", value: { host: "127.0.0.1", port } } as const,
  }));
  const mcp = create(McpBackendSchema, { targets });
  const backend = create(BackendSchema, { key: "backend/default/tools", kind: { case: "mcp", value: mcp } });
  const plane = await startWorkers(t, [listener(), irRoute("r", [to("tools")]), resourceOf("Backend", backend)]);
  const url = `${plane.url}/mcp`;
  const session = await begin(url);
  const calls = Array.from({ length: 60 }, async (_each, id) => {
    const name = id % 3 === 0 ? "alpha_echo" : "beta_echo";
    const request = { id: id + 2, method: "tools/call", params: { name, arguments: { text: `${id}` } } };
    const response = await postOnly(url, session, request);
    assert.deepEqual(response?.result?.["content"], [{ type: "text", text: `${name.split("_")[0]}: ${id}` }]);
  });
  await Promise.all(calls);
  for (let id = 70; id < 80; id++) {
    const stream = post(url, session, { id, method: "tools/call", params: { name: "beta_confirm", arguments: {} } });
    const { value: question } = await stream.next();
    await postOnly(url, session, { id: question?.id, result: { action: "accept" } });
    const { value: response } = await stream.next();
    assert.deepEqual(response?.result?.["content"], [{ type: "text", text: "accept" }]);
  }
  const initialized = servers.flatMap((server) => server.methods()).filter((method) => method === "initialize");
  assert.equal(initialized.length, 2);
});
