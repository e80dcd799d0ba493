/**
 * What rules hide from a caller looks like what does not exist, through sockets: lists are compared with those of a
 * server that has no such items, and calls of hidden items with calls of absent ones, in all that a client can see.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { completable as completableInput } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer as SessionMcpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { completable, ResourceTemplate as RequestResourceTemplate, type McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { INITIALIZE, MCP_HEADERS, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { DIALECTS, startDialectServer } from "../../support/servers/mcp-dialects.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { startModernMcpServer } from "../../support/servers/modern-mcp-server.ts";

const MODERN = "2026-07-28";
const VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const HIDDEN = "secret";
/** No server has it; as long as the other name, so that lengths agree. */
const ABSENT = "absent";
const RULES = [
  `mcp.tool.name == "${HIDDEN}"`,
  `mcp.tool.target == "alpha" && mcp.tool.name == "shared"`,
  `mcp.prompt.name == "${HIDDEN}"`,
  `mcp.resource.name.contains("//${HIDDEN}")`,
  `mcp.task.name == "${HIDDEN}"`,
];

/** Server `beta` has one tool; `alpha` has the others, and where it is complete those that the rules hide. */
const ITEMS: Readonly<Record<string, { readonly tools: readonly string[]; readonly others: readonly string[] }>> = {
  complete: { tools: ["first", HIDDEN, "shared", "last"], others: ["first", HIDDEN, "last"] },
  without: { tools: ["first", "last"], others: ["first", "last"] },
  beta: { tools: ["shared"], others: [] },
};

interface TestServer {
  readonly port: number;
  /** Methods of the requests that arrived, oldest first. */
  methods(): readonly string[];
}

type Start = (context: ProofContext, name: string, items: string) => Promise<TestServer>;

const content = (text: string) => ({ content: [{ type: "text" as const, text }] });
const greeting = { messages: [{ role: "user" as const, content: { type: "text" as const, text: "hello" } }] };
const startingWith = (value: unknown): string[] => ["anna", "anton"].filter((each) => each.startsWith(String(value)));

const startSessionServer: Start = (context, name, items) =>
  startMcpServer(context, {
    create: () => {
      const server = new SessionMcpServer({ name, version: "1" }, { capabilities: { resources: { subscribe: true } } });
      const { tools = [], others = [] } = ITEMS[items] ?? {};
      for (const each of tools) server.registerTool(each, {}, () => content(`${each} of ${name}`));
      for (const each of others) {
        const argsSchema = { who: completableInput(z.string(), startingWith) };
        server.registerPrompt(each, { argsSchema }, () => greeting);
        server.registerResource(each, `note://${each}`, {}, ({ href }) => ({
          contents: [{ uri: href, text: "note" }],
        }));
        const template = new ResourceTemplate(`page://${each}/{id}`, {
          list: undefined,
          complete: { id: startingWith },
        });
        server.registerResource(`page-${each}`, template, {}, ({ href }) => ({
          contents: [{ uri: href, text: "page" }],
        }));
      }
      server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
      server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
      return server;
    },
  });

const startRequestServer: Start = async (context, name, items) => {
  const { port, seen } = await startModernMcpServer(context, name, (server: McpServer) => {
    server.server.registerCapabilities({ resources: { subscribe: true } });
    const { tools = [], others = [] } = ITEMS[items] ?? {};
    for (const each of tools)
      server.registerTool(each, { inputSchema: z.object({}) }, () => content(`${each} of ${name}`));
    for (const each of others) {
      const argsSchema = z.object({ who: completable(z.string(), startingWith) });
      server.registerPrompt(each, { argsSchema }, () => greeting);
      server.registerResource(each, `note://${each}`, {}, ({ href }) => ({ contents: [{ uri: href, text: "note" }] }));
      const complete = { id: startingWith };
      const template = new RequestResourceTemplate(`page://${each}/{id}`, { list: undefined, complete });
      server.registerResource(`page-${each}`, template, {}, ({ href }) => ({
        contents: [{ uri: href, text: "page" }],
      }));
    }
  });
  return { port, methods: () => seen.map((headers) => String(headers["mcp-method"])) };
};

interface Layout {
  readonly mode: "Conditional" | "Always" | "Never";
  readonly targets: 1 | 2;
  /** What stands in front of the tools and prompts of `alpha`. */
  readonly prefix: string;
}

const LAYOUTS: readonly Layout[] = [
  { mode: "Conditional", targets: 1, prefix: "" },
  { mode: "Always", targets: 1, prefix: "alpha_" },
  { mode: "Conditional", targets: 2, prefix: "alpha_" },
  { mode: "Never", targets: 2, prefix: "" },
];

function backend(name: string, { mode, targets }: Layout, ports: readonly number[]): string {
  const list = ["alpha", "beta"]
    .slice(0, targets)
    .map((target, at) => `{name: ${target}, static: {host: 127.0.0.1, port: ${ports[at]}}}`);
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  mcp:
    prefixMode: ${mode}
    targets: [${list.join(", ")}]
  policies:
    mcp: {authorization: {action: Deny, policy: {matchExpressions: ['${RULES.join("', '")}']}}}`;
}

type Params = (item: string, prefix: string) => Readonly<Record<string, unknown>>;

const promptRef: Params = (item, prefix) => ({ ref: { type: "ref/prompt", name: prefix + item } });
const byUri: Params = (item) => ({ uri: `alpha+note://${item}` });

type Call = readonly [method: string, params: Params, eras: "both" | "sessions" | "modern"];

/** Requests that name an item. */
const CALLS: readonly Call[] = [
  ["tools/call", (item, prefix) => ({ name: prefix + item, arguments: {} }), "both"],
  ["prompts/get", (item, prefix) => ({ name: prefix + item, arguments: { who: "you" } }), "both"],
  ["resources/read", byUri, "both"],
  ["resources/read", (item) => ({ uri: `alpha+page://${item}/1` }), "both"],
  ["completion/complete", (...of) => ({ ...promptRef(...of), argument: { name: "who", value: "an" } }), "both"],
  ["completion/complete", (...of) => ({ ...promptRef(...of), argument: { name: "who", value: "none" } }), "both"],
  ["completion/complete", (...of) => ({ ...promptRef(...of), argument: { name: "other", value: "" } }), "both"],
  [
    "completion/complete",
    (item) => ({
      ref: { type: "ref/resource", uri: `alpha+page://${item}/{id}` },
      argument: { name: "id", value: "an" },
    }),
    "both",
  ],
  [
    "completion/complete",
    (item) => ({ ref: { type: "ref/resource", uri: `alpha+note://${item}` }, argument: { name: "id", value: "an" } }),
    "both",
  ],
  ["resources/subscribe", byUri, "sessions"],
  ["resources/unsubscribe", byUri, "sessions"],
  [
    "subscriptions/listen",
    (item) => ({ notifications: { resourceSubscriptions: [`alpha+note://${item}`] } }),
    "modern",
  ],
];
const LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
/** What the gateway asks of its own accord to know what exists. */
const OWN = new Set([...LISTS, "initialize", "notifications/initialized"]);

/** Fields that differ between any two answers. */
const CHANGING = new Set(["date", "x-request-id"]);

interface Request {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** All of an answer that a client can see, but for the time and random ids; of a subscription its first event. */
async function ask(url: string, version: string, requests: readonly Request[], session: string | undefined) {
  const headers: Record<string, string> = { ...MCP_HEADERS, "mcp-protocol-version": version };
  const [first] = requests;
  if (session !== undefined) headers["mcp-session-id"] = session;
  const meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
  };
  if (version === MODERN) {
    headers["mcp-method"] = first?.method ?? "";
    const name = first?.params["name"] ?? first?.params["uri"] ?? first?.params["taskId"];
    if (name !== undefined) headers["mcp-name"] = String(name);
  }
  const messages = requests.map(({ method, params }, id) => ({
    jsonrpc: "2.0",
    id,
    method,
    params: version === MODERN ? { ...params, _meta: meta } : params,
  }));
  const isListening = first?.method === "subscriptions/listen";
  const leave = new AbortController();
  const body = JSON.stringify(messages.length === 1 ? messages[0] : messages);
  const response = await fetch(url, { method: "POST", headers, body, signal: leave.signal });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (isListening && /^data: .*\n\n/m.test(text)) break;
  }
  leave.abort();
  const fields = [...response.headers].filter(([name]) => !CHANGING.has(name));
  return { status: response.status, fields, text };
}

async function begin(url: string, version: string): Promise<string | undefined> {
  if (version === MODERN) return undefined;
  const { headers, body } = await post(url, INITIALIZE.replace("2025-11-25", version));
  const session = headers["mcp-session-id"];
  assert.ok(typeof session === "string", body);
  await post(url, { jsonrpc: "2.0", method: "notifications/initialized" }, { "mcp-session-id": session });
  return session;
}

interface Peer {
  readonly url: string;
  readonly version: string;
  readonly session: string | undefined;
  readonly prefix: string;
  /** For messages of assertions. */
  readonly what: string;
  /** A method that the server does not have. */
  readonly unserved?: string | undefined;
  /** Methods that arrived at the server with the items. */
  methods(): readonly string[];
}

/** Names a hidden, an absent and another item in each of the calls, and in a batch of all of them. */
async function expectAlike(table: readonly Call[], peer: Peer): Promise<void> {
  const { url, version, session, prefix, unserved, methods } = peer;
  const calls = table.filter(([, , eras]) => eras === "both" || (eras === "modern") === (version === MODERN));
  const rows = calls.map((call) => [call]);
  if (version === "2025-03-26") rows.push(calls);
  for (const row of rows) {
    const named = (item: string) => row.map(([method, paramsOf]) => ({ method, params: paramsOf(item, prefix) }));
    const title = `${peer.what} ${JSON.stringify(named(HIDDEN))}`;
    const before = methods().length;
    const hidden = await ask(url, version, named(HIDDEN), session);
    const arrived = methods().slice(before);
    assert.deepEqual(
      arrived.filter((method) => !OWN.has(method)),
      [],
      title,
    );
    const absent = await ask(url, version, named(ABSENT), session);
    assert.deepEqual(hidden, { ...absent, text: absent.text.replaceAll(ABSENT, HIDDEN) }, title);
    // What is not hidden passes, so it was the rules that refused the request.
    const shown = await ask(url, version, named("first"), session);
    assert.equal(shown.status, 200, `${title}: ${shown.text}`);
    if (!row.some(([method]) => method === unserved)) assert.doesNotMatch(shown.text, /"error"/, title);
    assert.notEqual(shown.text, hidden.text, title);
  }
}

for (const [era, start, versions] of [
  ["servers with sessions", startSessionServer, VERSIONS.filter((version) => version !== MODERN)],
  ["servers of 2026-07-28", startRequestServer, [MODERN]],
] as const)
  test(`a hidden item cannot be told from one that does not exist, and no call of it arrives: ${era}`, async (t) => {
    const [complete, without, beta] = await Promise.all([
      start(t, "alpha", "complete"),
      start(t, "alpha", "without"),
      start(t, "beta", "beta"),
    ]);
    const backends = LAYOUTS.flatMap((layout, at) =>
      Object.entries({ complete, without }).flatMap(([name, alpha]) => [
        backend(`${name}-${at}`, layout, [alpha.port, beta.port]),
        route(`${name}-${at}`, `${name}-${at}`, `/${name}/${at}`),
      ]),
    );
    const gateway = await startGateway(t, documents(GATEWAY, ...backends));
    for (const [at, { mode, targets, prefix }] of LAYOUTS.entries())
      for (const version of versions) {
        const what = `${version} ${mode} ${targets}`;
        const [url, other] = [`${gateway.url()}/complete/${at}`, `${gateway.url()}/without/${at}`];
        const [session, otherSession] = [await begin(url, version), await begin(other, version)];
        for (const method of LISTS) {
          const listed = await ask(url, version, [{ method, params: {} }], session);
          assert.deepEqual(listed, await ask(other, version, [{ method, params: {} }], otherSession), what);
          assert.match(listed.text, /first.*last/, `${what} ${method}`);
        }
        await expectAlike(CALLS, { url, version, session, prefix, what, methods: complete.methods });
      }
  });

const byTask: Params = (item, prefix) => ({ taskId: prefix.replace("_", "+") + item });

/** Requests to servers that have tasks. */
const TASK_CALLS: readonly Call[] = [
  ["tasks/get", byTask, "both"],
  ["tasks/cancel", byTask, "both"],
  ["tasks/result", byTask, "sessions"],
];
/** With several servers names and ids have a prefix, with one they have none. */
const DIALECT_LAYOUTS = LAYOUTS.filter(({ mode }) => mode === "Conditional");

test("a hidden item cannot be told from one that does not exist in whatever words servers refuse", async (t) => {
  const beta = await startDialectServer(t, ["shared"]);
  const servers = await Promise.all(
    Object.entries(DIALECTS).map(async ([name, dialect], at) => {
      const server = await startDialectServer(t, ["first", HIDDEN, "last"], dialect);
      return { name, dialect, server, path: `dialect-${at}` };
    }),
  );
  const objects = servers.flatMap(({ server, path }) =>
    DIALECT_LAYOUTS.flatMap((layout, at) => [
      backend(`${path}-${at}`, layout, [server.port, beta.port]),
      route(`${path}-${at}`, `${path}-${at}`, `/${path}/${at}`),
    ]),
  );
  const gateway = await startGateway(t, documents(GATEWAY, ...objects));
  for (const { name, dialect, server, path } of servers)
    for (const [at, { targets, prefix }] of DIALECT_LAYOUTS.entries())
      for (const version of VERSIONS) {
        const url = `${gateway.url()}/${path}/${at}`;
        const session = await begin(url, version);
        const what = `${name} ${version} ${targets}`;
        const unserved = dialect.completesNothing === true ? "completion/complete" : undefined;
        const peer = { url, version, session, prefix, what, unserved, methods: server.methods };
        await expectAlike([...CALLS, ...TASK_CALLS], peer);
      }
});
