/**
 * FastMCP, server and client in Python, and servers of the official SDKs with the same items: whatever the client gets of a
 * server alone, it gets through the gateway, from that server alone and from several at once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { connectMcp } from "../support/clients/mcp.ts";
import { startPython } from "../support/clients/python.ts";
import { documents, GATEWAY, route, startGateway } from "../support/gateway/gateway.ts";
import { contextOf, type ProofContext } from "../support/proofs/prove.ts";
import { startRequestTwin, startSessionTwin } from "../support/servers/mcp-twins.ts";

interface Server {
  /** Also the name of the target and of the route to this server alone; none begins with another. */
  readonly name: string;
  readonly port: number;
  readonly path: "/mcp" | "/sse";
}

async function startServers(
  context: ProofContext,
): Promise<Record<"python" | "events" | "session" | "request", Server>> {
  const [session, request, python] = await Promise.all([
    startSessionTwin(context, "session"),
    startRequestTwin(context, "request"),
    startPython(context, "mcp_server.py", "python"),
  ]);
  const [http = 0, sse = 0] = (await python.nextLine()).split(" ").map(Number);
  return {
    python: { name: "python", port: http, path: "/mcp" },
    events: { name: "events", port: sse, path: "/sse" },
    session: { name: "session", port: session, path: "/mcp" },
    request: { name: "request", port: request, path: "/mcp" },
  };
}

function backend(name: string, servers: readonly Server[]): string {
  const targets = servers.map((server) => {
    const protocol = server.path === "/sse" ? "SSE" : "StreamableHTTP";
    return `{name: ${server.name}, static: {host: 127.0.0.1, port: ${server.port}, protocol: ${protocol}}}`;
  });
  const object = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {mcp: {targets: [${targets.join(", ")}]}}
`;
  return documents(object, route(name, name, `/${name}`));
}

/** Removes the name of its target from what a client got through the gateway. */
function withoutTarget(report: unknown, name: string): unknown {
  return JSON.parse(JSON.stringify(report).replaceAll(`"${name}_`, '"').replaceAll(`"${name}+`, '"')) as unknown;
}

interface Peers {
  readonly servers: Awaited<ReturnType<typeof startServers>>;
  /** Without a slash at its end. */
  readonly url: string;
}

async function start(context: ProofContext): Promise<Peers> {
  const servers = await startServers(context);
  const { python, events, session, request } = servers;
  const objects = Object.values(servers).map((server) => backend(server.name, [server]));
  objects.push(backend("sessions", [python, events, session]), backend("requests", [python, request]));
  // The older transport of clients has the path /sse.
  objects.push(route("older", "sessions", "/sse"));
  const gateway = await startGateway(context, documents(GATEWAY, ...objects));
  return { servers, url: gateway.url() };
}

test("FastMCP and the official SDKs get of each other through the gateway what they get alone", async (t) => {
  const context = contextOf(t);
  const { servers, url } = await start(context);
  await useFastMcpClient(context, { servers, url });
  await useOfficialClients(context, url);
});

async function useFastMcpClient(context: ProofContext, { servers, url }: Peers): Promise<void> {
  const { python, events, session, request } = servers;
  const client = await startPython(context, "mcp_client.py");

  /** Asks one server alone, and through the gateway at each of the paths. */
  async function compare(mode: "legacy" | "auto", server: Server, version: string, merged: readonly string[]) {
    const { name, port, path } = server;
    const alone = (await client.ask({ url: `http://127.0.0.1:${port}${path}`, mode, prefix: "" })) as object;
    assert.deepEqual(
      alone,
      { ...alone, ...expectedOf(server === events ? "python" : name), version },
      `${name} itself`,
    );
    for (const at of [`/${name}`, ...merged]) {
      const prefix = merged.includes(at) ? name : "";
      const through = await client.ask({ url: `${url}${at}`, mode, prefix });
      assert.deepEqual(withoutTarget(through, name), alone, `${name} at ${at}, ${mode}`);
    }
  }

  for (const server of [python, events, session]) await compare("legacy", server, "2025-11-25", ["/sessions", "/sse"]);
  for (const server of [python, request]) await compare("auto", server, "2026-07-28", ["/requests"]);
  // A server without 2026-07-28 makes the client begin with initialize, also through the gateway.
  for (const server of [events, session]) await compare("auto", server, "2025-11-25", ["/sessions"]);
}

/** The clients of both lines of the official SDK use a FastMCP server, which asks them back. */
async function useOfficialClients(context: ProofContext, url: string): Promise<void> {
  const roots = { roots: [{ uri: "file:///official" }] };
  const { client: older } = await connectMcp(context, `${url}/sessions`, (client) =>
    client.setRequestHandler(ListRootsRequestSchema, () => roots),
  );
  const newer = new Client(
    { name: "test", version: "1" },
    { capabilities: { roots: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  newer.setRequestHandler("roots/list", () => roots);
  await newer.connect(new StreamableHTTPClientTransport(new URL(`${url}/requests`)));
  context.after(() => newer.close());
  for (const client of [older, newer]) {
    const progress: number[] = [];
    const onprogress = (each: { progress: number }) => void progress.push(each.progress);
    const asked = await client.callTool({ name: "python_ask_roots", arguments: {} });
    assert.deepEqual(asked.content, [{ type: "text", text: "file:///official" }]);
    const { content } = await countTo(client, onprogress);
    assert.deepEqual([content, progress], [[{ type: "text", text: "counted to 3" }], [1, 2, 3]]);
    const { contents } = await client.readResource({ uri: "python+page://shared/7" });
    assert.equal(contents[0]?.uri, "python+page://shared/7");
    const { messages } = await client.getPrompt({ name: "python_greet", arguments: { who: "you" } });
    assert.deepEqual(messages[0]?.content, { type: "text", text: "hello you from python" });
  }
}

const COUNT = { name: "python_count", arguments: { to: 3 } };
const countTo = (client: OlderClient | Client, onprogress: (each: { progress: number }) => void) =>
  client instanceof Client ? client.callTool(COUNT, { onprogress }) : client.callTool(COUNT, undefined, { onprogress });

/** What the client has to get of a server, so that servers that answer nothing are not equal. */
const expectedOf = (name: string): object => ({
  echo: [false, [`${name}: häll\u2028o`]],
  count: [false, ["counted to 3"]],
  progress: [1, 2, 3].map((at) => [at, 3]),
  say: [false, ["said"]],
  logged: [["info", "loud"]],
  ask_model: [false, ["model: why!"]],
  ask_user: [false, ["user: blue for me"]],
  ask_roots: [false, ["file:///workspace"]],
  wrong: true,
  greet: [`hello you from ${name}`],
  note: [["note://shared/1", `note of ${name}`]],
  page: [["page://shared/7", `page 7 of ${name}`]],
  completed: ["anna", "anton"],
  completed_page: ["anna", "anton"],
});
