/**
 * Ids of sessions and cursors that a client must not use: changed, cut, made up, sealed for something else, or someone
 * else's. Nothing of such a request reaches a server, and the session of the owner goes on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRecord, encodeRecord, type SessionRecord } from "../../../src/proxy/mcp/session/record.ts";
import { Seal } from "../../../src/proxy/mcp/session/seal.ts";
import { call, parseJson } from "../../support/clients/http.ts";
import { INITIALIZE, MCP_HEADERS, openSse, post } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, gatewayOf, route, routePolicy, startGateway } from "../../support/gateway/gateway.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { startScripted, type ScriptedServer } from "../../support/servers/scripted-server.ts";

const KEY = "01".repeat(32);
const seal = sealOf(KEY);
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const PING = '{"jsonrpc":"2.0","id":2,"method":"ping"}';
/** What clients post, with a version that has batches. */
const POSTED = [
  PING,
  INITIALIZE,
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
  '{"jsonrpc":"2.0","id":"gw_t0_n_1","result":{}}',
  `[${PING},{"jsonrpc":"2.0","id":"gw_t0_n_1","result":{}}]`,
];

function sealOf(key: string): Seal {
  return new Seal([Buffer.from(key, "hex")]);
}

/** Puts another character, some of whose bits differ, in place of one. */
function changed(id: string, at: number, by = 1): string {
  const other = ALPHABET[ALPHABET.indexOf(id[at] ?? "") ^ by] ?? "";
  return id.slice(0, at) + other + id.slice(at + 1);
}

/** Ids that other clients were given. */
interface Others {
  /** Of the same user, with another backend. */
  readonly ofBackend: string;
  /** Of another user. */
  readonly ofUser: string;
  /** Of a caller without a name. */
  readonly ofNobody: string;
}

type Row = readonly [what: string, text: string | string[]];

/** What can become of a sealed text on its way. */
function spoil(text: string): Row[] {
  const bytes = Buffer.from(text, "base64url");
  return [
    ...Array.from(text, (_, at): Row => [`character ${at} changed`, changed(text, at)]),
    ["the highest bit of its last character changed", changed(text, text.length - 1, 32)],
    ...[0, 1, 15, 16, 37, 38, text.length - 1].map((end): Row => [`cut after ${end} characters`, text.slice(0, end)]),
    ["without its first character", text.slice(1)],
    ...["A", "AA", "AAAA", "=", "==", "%3D", ".", "\t.", text].map((more): Row => [`with ${more}`, text + more]),
    ["behind other characters", `AAAA${text}`],
    ["in another case", text.toUpperCase()],
    ["in the other alphabet", `${text.replaceAll("-", "+").replaceAll("_", "/")}=`],
    ["in quotes", `"${text}"`],
    ["in hexadecimal digits", bytes.toString("hex")],
    ["of zeros", "A".repeat(text.length)],
    ["of eight thousand zeros", "A".repeat(8_000)],
    ["__proto__", "__proto__"],
  ];
}

function idsBut(id: string, { ofBackend, ofUser, ofNobody }: Others): Row[] {
  const bytes = seal.open("session", id);
  const record = bytes && decodeRecord(bytes);
  assert.ok(bytes !== undefined && record !== undefined);
  const sealed = (change: Partial<SessionRecord>): string =>
    seal.seal("session", encodeRecord({ ...record, ...change }));
  return [
    ...spoil(id),
    ["unsealed", bytes.toString("base64url")],
    ["sealed as a cursor", seal.seal("cursor", bytes)],
    ["sealed as a stream", seal.seal("stream", bytes)],
    ["sealed with a key that was removed", sealOf("02".repeat(32)).seal("session", bytes)],
    ["sealed a day ago", sealed({ createdAtS: record.createdAtS - 24 * 3_600 - 60 })],
    ["of another layout", seal.seal("session", Buffer.concat([Buffer.from([99]), bytes.subarray(1)]))],
    ["of another backend", ofBackend],
    ["of another user", ofUser],
    ["of a caller without a name", ofNobody],
    ["of the server", record.targets.values().next().value?.id ?? ""],
    ["twice", [id, id]],
    ["twice in one field", `${id}, ${id}`],
    ["before another", [id, ofUser]],
    ["after another", ["made-up", id]],
  ];
}

function backend(name: string, ...servers: readonly { readonly port: number }[]): string {
  const targets = servers.map(({ port }, at) => `{name: t${at}, static: {host: 127.0.0.1, port: ${port}}}`);
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {mcp: {targets: [${targets.join(", ")}]}}
`;
}

const KEYS = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {ann: key-of-ann, eve: key-of-eve}
`;

const ANN = { authorization: "Bearer key-of-ann" };
const EVE = { authorization: "Bearer key-of-eve" };

/** Starts the backends `tools` and `other`, with keys for two users; callers without a name are admitted. */
async function startTwo(t: ProofContext, routes: Readonly<Record<string, string>>) {
  const [server, other] = [await startMcpServer(t), await startMcpServer(t)];
  const authentication = "  traffic: {apiKeyAuthentication: {mode: Optional, secretRef: {name: keys}}}";
  const policies = Object.keys(routes).map((name) => routePolicy(`keys-${name}`, name, authentication));
  const listeners = gatewayOf([
    "{name: http, port: 8080, protocol: HTTP}",
    "{name: second, port: 8081, protocol: HTTP}",
  ]);
  const backends = [backend("tools", server), backend("other", other)];
  const objects = documents(listeners, KEYS, ...backends, ...Object.values(routes), ...policies);
  const gateway = await startGateway(t, objects, { sessionKeys: [KEY] });
  return { gateway, calls: () => server.calls.length + other.calls.length };
}

test("an id that is not the client's own is that of no session, whatever is asked with it", async (t) => {
  const { gateway, calls } = await startTwo(contextOf(t), {
    tools: route("tools", "tools", "/mcp"),
    again: route("again", "tools", "/again"),
    other: route("other", "other", "/other"),
  });
  const url = `${gateway.url()}/mcp`;
  const begin = async (path: string, headers: Readonly<Record<string, string>>): Promise<string> => {
    const begun = await post(`${gateway.url()}${path}`, INITIALIZE.replace("2025-11-25", "2025-03-26"), headers);
    assert.equal(begun.status, 200, begun.body);
    return String(begun.headers["mcp-session-id"]);
  };
  const id = await begin("/mcp", ANN);
  const others = {
    ofBackend: await begin("/other", ANN),
    ofUser: await begin("/mcp", EVE),
    ofNobody: await begin("/mcp", {}),
  };
  const ping = (address: string) => post(address, PING, { ...ANN, "mcp-session-id": id });

  for (const [what, changedId] of idsBut(id, others)) {
    const before = calls();
    const headers = { ...MCP_HEADERS, ...ANN, "mcp-session-id": changedId };
    const answers = await Promise.all([
      ...POSTED.map((body) => call(url, { method: "POST", headers, body })),
      call(url, { headers }),
      call(url, { method: "DELETE", headers }),
    ]);
    const statuses = answers.map(({ status }) => status);
    assert.deepEqual(statuses, [...POSTED.map(() => 404), 404, 202], what);
    for (const { body } of answers)
      assert.match(
        body,
        /^(?:|\{"jsonrpc":"2\.0","id":(?:1|2|null),"error":\{"code":-32600,"message":"Session not found"\}\})$/,
      );
    assert.equal(calls(), before, `${what}: nothing reaches a server`);
    assert.equal((await ping(url)).status, 200, `${what}: the session of the owner lives on`);
  }
  // The session is of the backend: where other routes and listeners lead to the same one, it is known.
  for (const address of [`${gateway.url()}/again`, `${gateway.url(8081)}/mcp`])
    assert.equal((await ping(address)).status, 200, address);
});

const TO_SSE = "filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /sse}}}]";

function streamsBut(id: string, { ofBackend, ofUser, ofNobody }: Others): Row[] {
  const bytes = seal.open("stream", id);
  assert.ok(bytes !== undefined);
  const sealed = (at: number): string => {
    const other = Buffer.from(bytes);
    other[at] = (other[at] ?? 0) ^ 1;
    return seal.seal("stream", other);
  };
  return [
    ...spoil(id),
    ["unsealed", bytes.toString("base64url")],
    ["sealed as a cursor", seal.seal("cursor", bytes)],
    ["sealed as a session", seal.seal("session", bytes)],
    ["sealed with a key that was removed", sealOf("02".repeat(32)).seal("stream", bytes)],
    ["of another thread", sealed(0)],
    ["of a thread that never was", sealed(1)],
    ["of another stream", sealed(2)],
    ["of another backend", ofBackend],
    ["of another user", ofUser],
    ["of a caller without a name", ofNobody],
    ["twice in one value", `${id},${id}`],
    ["before another", [id, ofUser]],
  ];
}

test("an id that is not of the client's own stream is that of none, whatever is posted with it", async (t) => {
  const context = contextOf(t);
  const { gateway, calls } = await startTwo(context, {
    tools: route("tools", "tools", "/sse"),
    other: route("other", "other", "/other").replace("backendRefs", `${TO_SSE}\n      backendRefs`),
  });
  const url = gateway.url();
  const begin = async (path: string, headers: Readonly<Record<string, string>>) => {
    const stream = await openSse(context, url + path, headers);
    assert.equal((await post(url + stream.address, INITIALIZE, headers)).status, 202);
    assert.equal(((await stream.next()) as { id?: number }).id, 1);
    return { ...stream, id: new URL(stream.address, url).searchParams.get("sessionId") ?? "" };
  };
  const own = await begin("/sse", ANN);
  const others = {
    ofBackend: (await begin("/other", ANN)).id,
    ofUser: (await begin("/sse", EVE)).id,
    ofNobody: (await begin("/sse", {})).id,
  };
  for (const [what, changedId] of streamsBut(own.id, others)) {
    const before = calls();
    const query = new URLSearchParams([changedId].flat().map((id) => ["sessionId", id]));
    for (const body of POSTED) {
      const answer = await post(`${url}/sse?${query.toString()}`, body, ANN);
      assert.deepEqual([answer.status, answer.body], [404, NOT_FOUND], what);
    }
    assert.equal(calls(), before, `${what}: nothing reaches a server`);
    assert.equal((await post(url + own.address, PING, ANN)).status, 202, what);
    assert.deepEqual(await own.next(), { jsonrpc: "2.0", id: 2, result: {} }, `${what}: the stream lives on`);
  }
  assert.equal((await post(`${url}/other?sessionId=${own.id}`, PING, ANN)).status, 404, "at another backend");
});

const NOT_FOUND = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}';

const LISTS = {
  "tools/list": "tools",
  "prompts/list": "prompts",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
};

/** A server with two pages of everything, the second of which begins at "next". */
function startPages(t: ProofContext): Promise<ScriptedServer> {
  return startScripted(t, ({ body }, response) => {
    const { id, method, params } = body as { id?: unknown; method: string; params?: { cursor?: string } };
    if (id === undefined) return void response.writeHead(202).end();
    const capabilities = { tools: {}, prompts: {}, resources: {} };
    const introduction = { protocolVersion: "2025-03-26", capabilities, serverInfo: { name: "s", version: "1" } };
    const member = Object.entries(LISTS).find(([list]) => list === method)?.[1] ?? "";
    const page = { [member]: [], ...(params?.cursor === "next" ? {} : { nextCursor: "next" }) };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: method === "initialize" ? introduction : page }));
  });
}

test("a cursor that was not made for the list is refused, and reaches no server", async (t) => {
  const servers = [await startPages(contextOf(t)), await startPages(contextOf(t))] as const;
  const objects = ["tools", "other"].map((name) => documents(backend(name, ...servers), route(name, name, `/${name}`)));
  const gateway = await startGateway(t, documents(GATEWAY, ...objects), { sessionKeys: [KEY] });
  const begin = async (name: string) => {
    const begun = await post(`${gateway.url()}/${name}`, INITIALIZE);
    return { "mcp-session-id": String(begun.headers["mcp-session-id"]) };
  };
  const sessions = { tools: await begin("tools"), other: await begin("other") };
  const ask = async (name: keyof typeof sessions, method: string, cursor?: unknown) => {
    const message = { jsonrpc: "2.0", id: 1, method, params: { cursor } };
    const { status, body } = await post(`${gateway.url()}/${name}`, message, sessions[name]);
    return { status, ...(parseJson(body) as { result?: { nextCursor?: string }; error?: unknown }) };
  };
  const cursorOf = async (name: keyof typeof sessions, method: string): Promise<string> =>
    (await ask(name, method)).result?.nextCursor ?? "";

  for (const method of Object.keys(LISTS)) {
    const cursor = await cursorOf("tools", method);
    const bytes = seal.open("cursor", cursor) ?? Buffer.alloc(0);
    const rows: (readonly [what: string, cursor: unknown])[] = [
      ...spoil(cursor),
      ["of a server", "next"],
      ["of another backend", await cursorOf("other", method)],
      ["of another method", await cursorOf("tools", method === "tools/list" ? "prompts/list" : "tools/list")],
      ["sealed as a session", seal.seal("session", bytes)],
      ["sealed with a key that was removed", sealOf("02".repeat(32)).seal("cursor", bytes)],
      ["an id of the session", sessions.tools["mcp-session-id"]],
      ...[7, null, {}, [cursor], true].map((value) => [JSON.stringify(value), value] as const),
    ];
    for (const [what, changedCursor] of rows) {
      const before = servers.map(({ received }) => received.length);
      const { status, error } = await ask("tools", method, changedCursor);
      assert.deepEqual([status, error], [200, { code: -32_602, message: "Invalid cursor" }], `${method}: ${what}`);
      assert.deepEqual(
        servers.map(({ received }) => received.length),
        before,
        what,
      );
    }
    assert.deepEqual((await ask("tools", method, cursor)).result?.nextCursor, undefined, "the cursor itself goes on");
  }
});
