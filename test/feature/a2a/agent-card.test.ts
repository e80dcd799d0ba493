/** Cards of A2A agents through real sockets: whatever a client reads in them leads through the gateway. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { a2aBackend, agentManifests, agentRoute, modernCard, olderCard } from "../../support/gateway/agents.ts";
import { documents, GATEWAY, gatewayPolicy, startGateway } from "../../support/gateway/gateway.ts";
import { call, parseJson, type Answer } from "../../support/clients/http.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startScripted, type Received, type ScriptedServer } from "../../support/servers/scripted-server.ts";

const CARD = "/.well-known/agent-card.json";
const OLDER_CARD = "/.well-known/agent.json";
const UNUSABLE = "a2a: agent card is not usable";
const JSON_TYPE = { "content-type": "application/json" };

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, JSON_TYPE).end(JSON.stringify(value));
}

interface Serving {
  readonly url: string;
  readonly agent: ScriptedServer;
}

async function serve(
  context: ProofContext,
  respond: (request: Received, response: ServerResponse) => void,
): Promise<Serving> {
  const agent = await startScripted(context, respond);
  const gateway = await startGateway(context, agentManifests(agent.port));
  return { url: gateway.url(), agent };
}

/** Tells what an agent answers to everything. */
function serveBody(t: TestContext, headers: Record<string, string>, body: Buffer | string): Promise<Serving> {
  return serve(contextOf(t), (_, response) => response.writeHead(200, headers).end(body));
}

function withoutSignatures(card: object): object {
  const { signatures: _, ...rest } = card as { signatures?: unknown };
  return rest;
}

prove(
  ["GwBackend spec.a2a.host", "GwBackend spec.a2a.port"],
  "cards of both generations are pointed at the gateway, below a prefix and without one, and lose their signatures",
  async (context) => {
    const { url, agent } = await serve(context, ({ path }, response) =>
      sendJson(response, path.endsWith(OLDER_CARD) ? olderCard() : modernCard()),
    );
    // The URL of gRPC, those of people and the extended ones of the provider stay.
    for (const [path, base] of [
      [`/team${CARD}`, `${url}/team`],
      [CARD, url],
    ] as const) {
      const { status, body, headers } = await call(url + path);
      assert.deepEqual([status, parseJson(body)], [200, withoutSignatures(modernCard(base))], path);
      assert.equal(headers["content-length"], String(Buffer.byteLength(body)));
    }
    const older = await call(`${url}/team${OLDER_CARD}`);
    assert.deepEqual(parseJson(older.body), withoutSignatures(olderCard(`${url}/team`)));
    assert.deepEqual(
      agent.received.map(({ path }) => path),
      [CARD, CARD, OLDER_CARD],
    );
  },
);

test("a port of a Service that declares the protocol is an agent too", async (t) => {
  const context = contextOf(t);
  const agent = await startScripted(context, (_, response) => sendJson(response, modernCard()));
  const service = (name: string, appProtocol: string) => `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {ports: [{name: web, port: 80, appProtocol: ${appProtocol}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: web, port: ${agent.port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}}
spec:
  parentRefs: [{name: gw}]
  rules: [{matches: [{path: {value: /${name}}}], backendRefs: [{name: ${name}, port: 80}]}]
`;
  const gateway = await startGateway(
    context,
    documents(GATEWAY, service("agent", "gwproxy.dev/a2a"), service("web", "http")),
  );
  const url = gateway.url();
  const [card, plain] = await Promise.all([call(`${url}/agent${CARD}`), call(`${url}/web${CARD}`)]);
  assert.deepEqual(parseJson(card.body), withoutSignatures(modernCard(`${url}/agent`)));
  assert.deepEqual(parseJson(plain.body), modernCard());
});

test("a card is pointed at the gateway however its path is spelled", async (t) => {
  const { url, agent } = await serve(contextOf(t), (_, response) => sendJson(response, modernCard()));
  const spellings = [
    "/.well-known/agent%2Dcard.json",
    "/%2ewell-known/agent-card.json",
    "/.Well-Known/Agent-Card.JSON",
    `${CARD}/`,
  ];
  for (const spelling of spellings) {
    const { body } = await call(`${url}/team${spelling}?x=1`);
    assert.deepEqual(parseJson(body), withoutSignatures(modernCard(`${url}/team`)), spelling);
  }
  assert.equal(agent.received.length, spellings.length);
});

const CODINGS = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
} as const;

for (const [coding, encode] of Object.entries(CODINGS))
  test(`a card in content coding ${coding} is read, and sent without it`, async (t) => {
    const headers = { ...JSON_TYPE, "content-encoding": coding, etag: '"1"', "content-digest": "sha-256=:AA==:" };
    const { url } = await serveBody(t, headers, encode(JSON.stringify(modernCard())));
    const { headers: got, body } = await call(`${url}/team${CARD}`, { headers: { "accept-encoding": coding } });
    assert.deepEqual(parseJson(body), withoutSignatures(modernCard(`${url}/team`)));
    assert.deepEqual([got["content-encoding"], got["etag"], got["content-digest"]], [undefined, undefined, undefined]);
  });

test("a card that leads through the gateway already keeps every byte, its signatures and its content coding", async (t) => {
  let card: Buffer = Buffer.alloc(0);
  const { url } = await serve(contextOf(t), (_, response) => {
    response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip", etag: '"1"' }).end(card);
  });
  card = gzipSync(JSON.stringify(modernCard(url), undefined, 3));
  const response = await fetch(url + CARD);
  assert.deepEqual([response.headers.get("content-encoding"), response.headers.get("etag")], ["gzip", '"1"']);
  assert.equal(await response.text(), JSON.stringify(modernCard(url), undefined, 3));
});

test("what the gateway does not know of a card survives byte for byte", async (t) => {
  const text = (url: string) =>
    `{ "name":"\\u0061", "long": 12345678901234567890123, "__proto__": {"a": 1.0},\n "url" : "${url}", "x": [1e400] }`;
  const { url } = await serveBody(t, JSON_TYPE, text("http://agent.internal/rpc"));
  assert.equal((await call(`${url}/team${CARD}`)).body, text(`${url}/team/rpc`));
});

test("an agent cannot hide a URL from the gateway by the spelling of its card", async (t) => {
  const { url } = await serveBody(
    t,
    JSON_TYPE,
    `{"url":"http://one.internal/a","\\u0075rl":"http://two.internal/b","skills":[],` +
      `"supported_interfaces":[{"u\\u0072l":"HTTP:\\\\\\\\three.internal\\\\c","protocol_binding":"HTTP+JSON"}],` +
      `"signatures":1,"signatures":2,"preferredTransport":"GRPC","preferredTransport":"JSONRPC",` +
      `"additionalInterfaces":[{"transport":"GRPC","transport":"JSONRPC","url":"//four.internal:80/d"},` +
      `{"transport":"GRPC","protocolBinding":"JSONRPC","url":"https://me:word@five.internal:443/e"},` +
      `{"url":"http://[fd00::5]:8080/f?to=1"},{"url":"http://0x7f000001/g","url":7},{"url":"h\\u0009"}]}`,
  );
  const { body } = await call(url + CARD);
  assert.doesNotMatch(body, /internal|signatures|word|fd00|0x7f/);
  const paths = ["/a", "/b", "/c", "/d", "/e", String.raw`/f\?to=1`, "/g"];
  assert.match(body, new RegExp(paths.map((path) => `"${url}${path}"`).join(".*")));
});

const BROKEN: readonly (readonly [about: string, headers: Record<string, string>, body: Buffer | string])[] = [
  ["is not JSON", JSON_TYPE, "<html>"],
  ["is a list", JSON_TYPE, "[]"],
  ["has no URL", JSON_TYPE, '{"name":"a"}'],
  ["has interfaces that are not a list", JSON_TYPE, '{"url":"http://a/","supportedInterfaces":{}}'],
  ["is empty", JSON_TYPE, ""],
  ["is not UTF-8", JSON_TYPE, Buffer.from('{"url":"http://a/\xff"}', "latin1")],
  ["is nested too deeply", JSON_TYPE, `{"url":"http://a/","x":${"[".repeat(100)}${"]".repeat(100)}}`],
  ["has a coding that nobody knows", { ...JSON_TYPE, "content-encoding": "lzma" }, "x"],
  ["has a broken coding", { ...JSON_TYPE, "content-encoding": "gzip" }, "x"],
  ["is too large", JSON_TYPE, JSON.stringify({ url: "http://a/", x: "x".repeat(3_000_000) })],
  [
    "is too large when it is decoded",
    { ...JSON_TYPE, "content-encoding": "gzip" },
    gzipSync(JSON.stringify({ url: "http://a/", x: "x".repeat(3_000_000) })),
  ],
];

for (const [about, headers, body] of BROKEN)
  test(`a card that ${about} is answered 502 with a fixed text`, async (t) => {
    const { url } = await serveBody(t, headers, body);
    const answer = await call(`${url}/team${CARD}`);
    assert.deepEqual([answer.status, answer.body], [502, UNUSABLE]);
  });

test("another status than 2xx passes untouched, and so does a request that is neither card nor call", async (t) => {
  const { url } = await serve(contextOf(t), ({ path }, response) => {
    if (path === CARD) response.writeHead(404, { "content-type": "text/plain", etag: '"1"' }).end("no card");
    else sendJson(response, modernCard());
  });
  const missing = await call(`${url}/team${CARD}`);
  assert.deepEqual([missing.status, missing.body, missing.headers["etag"]], [404, "no card", '"1"']);
  assert.deepEqual(parseJson((await call(`${url}/team/other`)).body), modernCard());
});

test("conditions and ranges of a request for a card do not reach the agent, whose text they do not describe", async (t) => {
  const { url, agent } = await serve(contextOf(t), (_, response) => sendJson(response, modernCard()));
  const headers = {
    "if-none-match": '"1"',
    "if-modified-since": "Sun, 22 Nov 2026 00:00:00 GMT",
    range: "bytes=0-9",
    "x-other": "stays",
  };
  await call(`${url}/team${CARD}`, { headers });
  await call(`${url}/team/other`, { headers });
  const seen = agent.received.map((received) => Object.keys(headers).filter((name) => name in received.headers));
  assert.deepEqual(seen, [["x-other"], Object.keys(headers)]);
});

test("HEAD of a card has no length and no validators of the agent's text", async (t) => {
  const { url } = await serve(contextOf(t), (_, response) =>
    response.writeHead(200, { ...JSON_TYPE, "content-length": "7", etag: '"1"' }).end(),
  );
  const { status, headers } = await call(`${url}/team${CARD}`, { method: "HEAD" });
  assert.deepEqual([status, headers["content-length"], headers["etag"]], [200, undefined, undefined]);
});

for (const [about, policy, origin] of [
  ["trusted", "  frontend: {http: {trustedProxies: [127.0.0.1]}}", "https://api.example.com"],
  ["untrusted", "  frontend: {http: {trustedProxies: [10.0.0.1]}}", "http://api.example.com"],
] as const)
  test(`the scheme of the URLs in a card, behind a proxy that is ${about}`, async (t) => {
    const context = contextOf(t);
    const agent = await startScripted(context, (_, response) => sendJson(response, modernCard()));
    const gateway = await startGateway(context, documents(agentManifests(agent.port), gatewayPolicy("peers", policy)));
    const headers = { host: "api.example.com", "x-forwarded-proto": "https" };
    const { body } = await call(`${gateway.url()}/team${CARD}`, { headers });
    assert.deepEqual(parseJson(body), withoutSignatures(modernCard(`${origin}/team`)));
  });

/** Requests whose answer holds an extended card, in every binding that is text. */
const EXTENDED: readonly (readonly [about: string, path: string, body: object | undefined, card: typeof modernCard])[] =
  [
    ["JSON-RPC of 1.0", "/rpc", { jsonrpc: "2.0", id: 1, method: "GetExtendedAgentCard" }, modernCard],
    ["JSON-RPC of 0.3", "/rpc", { jsonrpc: "2.0", id: 1, method: "agent/getAuthenticatedExtendedCard" }, olderCard],
    ["HTTP+JSON of 1.0", "/rest/extendedAgentCard", undefined, modernCard],
    ["HTTP+JSON of 0.3", "/rest/v1/card", undefined, olderCard],
  ];

for (const [about, path, body, cardOf] of EXTENDED)
  test(`an extended card is pointed at the gateway: ${about}`, async (t) => {
    const { url } = await serve(contextOf(t), (_, response) => {
      const card = cardOf();
      sendJson(response, body === undefined ? card : { jsonrpc: "2.0", id: 1, result: card });
    });
    const request = body === undefined ? {} : { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body) };
    for (const prefix of ["/team", ""]) {
      const answer = parseJson((await call(url + prefix + path, request)).body);
      const expected = withoutSignatures(cardOf(url + prefix));
      assert.deepEqual(answer, body === undefined ? expected : { jsonrpc: "2.0", id: 1, result: expected });
    }
  });

/** Where an agent redirects to, and what of it a client gets behind the URL of the gateway. */
const REDIRECTS: readonly (readonly [location: string, inside: string])[] = [
  [OLDER_CARD, OLDER_CARD],
  ["cards/one.json?v=2", "/.well-known/cards/one.json?v=2"],
  ["http://10.0.0.8:9000/cards/one.json", "/cards/one.json"],
  ["https://agent.internal", ""],
  [String.raw`\\agent.internal\card.json`, "/card.json"],
];

test("a redirect in place of a card leads through the gateway, whatever it names", async (t) => {
  let location = "";
  const { url } = await serve(contextOf(t), (_, response) => response.writeHead(307, { location }).end("moved"));
  const locationOf = async (path: string, body?: string): Promise<unknown> => {
    const what = body === undefined ? {} : { method: "POST", headers: JSON_TYPE, body };
    const answer = await call(url + path, what);
    assert.deepEqual([answer.status, answer.body], [307, "moved"]);
    return answer.headers["location"];
  };
  for (const [named, inside] of REDIRECTS)
    for (const prefix of ["/team", ""]) {
      location = named;
      assert.equal(await locationOf(prefix + CARD), url + prefix + inside, named);
    }
  location = "http://agent.internal/rpc/card";
  assert.equal(await locationOf("/team/rpc", JSON.stringify(CARD_CALL)), `${url}/team/rpc/card`);
  assert.equal(await locationOf("/team/rest/extendedAgentCard"), `${url}/team/rpc/card`);
  for (const kept of ["mailto:someone@agent.internal", ""]) {
    location = kept;
    assert.equal(await locationOf(`/team${CARD}`), kept);
  }
  location = "http://elsewhere.internal/";
  assert.equal(await locationOf("/team/other"), location, "what is not about a card passes");
});

const CARD_CALL = { jsonrpc: "2.0", id: 1, method: "GetExtendedAgentCard" };
/** Requests whose method cannot be read here, but perhaps at the agent. */
const UNREADABLE: readonly (readonly [about: string, headers: Record<string, string>, body: string])[] = [
  ["of another type", { "content-type": "text/plain" }, JSON.stringify(CARD_CALL)],
  ["in a batch", JSON_TYPE, JSON.stringify([CARD_CALL])],
  ["above the limit", JSON_TYPE, JSON.stringify({ ...CARD_CALL, params: "x".repeat(3_000_000) })],
  ["with two methods", JSON_TYPE, JSON.stringify(CARD_CALL).replace("}", ',"method":"message/send"}')],
  [
    "with a method in two cases",
    JSON_TYPE,
    JSON.stringify({ Method: CARD_CALL.method, ...CARD_CALL, method: "tasks/get" }),
  ],
  ["with another name", JSON_TYPE, JSON.stringify({ ...CARD_CALL, method: "agent/card" })],
];

for (const [about, headers, body] of UNREADABLE)
  test(`an extended card is pointed at the gateway even when the call is unreadable: ${about}`, async (t) => {
    const inBatch = body.startsWith("[");
    const resultOf = (card: object) => {
      const answer = { jsonrpc: "2.0", id: 1, result: card };
      return inBatch ? [answer] : answer;
    };
    const { url, agent } = await serve(contextOf(t), (_, response) => sendJson(response, resultOf(modernCard())));
    const answer = await call(`${url}/team/rpc`, { method: "POST", headers, body });
    assert.deepEqual(parseJson(answer.body), resultOf(withoutSignatures(modernCard(`${url}/team`))));
    assert.equal(agent.received[0]?.text, body);
  });

test("an error, and a result that is no card, of a call for an extended card", async (t) => {
  let answer: unknown = { jsonrpc: "2.0", id: 1, error: { code: -32_007, message: "not configured" } };
  const { url } = await serve(contextOf(t), (_, response) => sendJson(response, answer));
  const ask = (): Promise<Answer> =>
    call(`${url}/team/rpc`, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(CARD_CALL) });
  assert.deepEqual(parseJson((await ask()).body), answer);
  answer = { jsonrpc: "2.0", id: 1, result: "http://agent.internal" };
  assert.deepEqual([(await ask()).status, (await ask()).body], [502, UNUSABLE]);
});

test("a card is limited by the response buffer of the Gateway", async (t) => {
  const context = contextOf(t);
  const agent = await startScripted(context, (_, response) => sendJson(response, modernCard()));
  const gateway = await startGateway(
    context,
    documents(
      GATEWAY,
      gatewayPolicy("small", "  frontend: {http: {maxBufferSize: 64}}"),
      a2aBackend("team", agent.port),
      agentRoute("team", "/team", "/"),
    ),
  );
  const answer = await call(`${gateway.url()}/team${CARD}`);
  assert.deepEqual([answer.status, answer.body], [502, UNUSABLE]);
});
