/** What costs a client little to send and a careless gateway much to read: it is read within bounds, and the next is served. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { connect as connectTls } from "node:tls";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  pemObject,
  route,
  routePolicy,
  startGateway,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { contextOf } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const DEPTH = 200_000;
const ARRAYS = "[".repeat(DEPTH) + "]".repeat(DEPTH);
const OBJECTS = '{"a":'.repeat(DEPTH) + "1" + "}".repeat(DEPTH);
const JSON_HEADERS = { "content-type": "application/json" };

const chatWith = (members: string): string => `{"model":"m","messages":[{"role":"user","content":"hi"}]${members}}`;
const HONEST = chatWith("");
const DEEP: Readonly<Record<string, string>> = {
  "arrays without a message": ARRAYS,
  "objects without a message": OBJECTS,
  "arrays that never end": "[".repeat(DEPTH),
  "content of arrays": `{"model":"m","messages":[{"role":"user","content":${ARRAYS}}]}`,
  "a member that nobody knows": chatWith(`,"x":${OBJECTS}`),
  "the schema of a tool": chatWith(`,"tools":[{"type":"function","function":{"name":"f","parameters":${OBJECTS}}}]`),
};

function aiBackend(ai: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: ${ai}
`;
}

const post = (gateway: TestGateway, body: string): Promise<Answer> =>
  call(`${gateway.url()}/v1/chat/completions`, { method: "POST", headers: JSON_HEADERS, body });

for (const provider of ["llma: {}", "llme: {}"])
  test(`a body nested ${DEPTH} deep for ${provider} ends that request alone`, async (t) => {
    const echo = await startEcho(contextOf(t));
    const backend = aiBackend(`{provider: {${provider}, host: 127.0.0.1, port: ${echo.port}}}`);
    const gateway = await startGateway(contextOf(t), documents(GATEWAY, backend, route("ai", "ai")));
    const honest = (await post(gateway, HONEST)).status;
    assert.equal(echo.seen.length, 1);
    for (const [name, body] of Object.entries(DEEP)) {
      const { status } = await post(gateway, body);
      assert.equal(status, 400, name);
      assert.equal((await post(gateway, HONEST)).status, honest, `after ${name}`);
    }
  });

test("an answer nested as deep ends its request alone", async (t) => {
  let said = "";
  const upstream = await startUpstream((request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json");
    response.end(said);
  });
  t.after(() => upstream.close());
  const backend = aiBackend(`{provider: {llme: {}, host: 127.0.0.1, port: ${upstream.port}}}`);
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, backend, route("ai", "ai")));
  for (const body of [ARRAYS, OBJECTS, `{"type":"message","content":${ARRAYS}}`]) {
    said = body;
    const { status } = await post(gateway, HONEST);
    assert.ok(status >= 200 && status < 600);
  }
  said =
    '{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],' +
    '"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}';
  const { status, body } = await post(gateway, HONEST);
  assert.equal(status, 200);
  assert.match(body, /hello/);
});

test("an expression over a body nested as deep denies, and allows the next", async (t) => {
  const echo = await startEcho(contextOf(t));
  const policy = routePolicy(
    "p",
    "web",
    `  traffic: {authorization: {action: Allow, policy: {matchExpressions: ["json(request.body).ok == true"]}}}`,
  );
  const objects = documents(GATEWAY, staticBackend("web", echo.port), route("web", "web"), policy);
  const gateway = await startGateway(contextOf(t), objects);
  for (const body of [ARRAYS, OBJECTS]) assert.equal((await post(gateway, body)).status, 403);
  assert.equal((await post(gateway, '{"ok":true}')).status, 200);
});

const TO_WEB = "backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: web}]";

/** @param rules of an HTTPRoute, indented by four */
const rulesOf = (rules: string): string => route("web", "web").replace(/^ {4}- name: rule[^]*/m, `${rules}\n`);

test("patterns that other engines never finish are matched in time that grows with the text", async (t) => {
  const echo = await startEcho(contextOf(t));
  const patterns = rulesOf(`    - matches:
        - {path: {type: RegularExpression, value: "/(a+)+b"}}
        - {headers: [{type: RegularExpression, name: x-a, value: "(a|aa)+b"}]}
        - {queryParams: [{type: RegularExpression, name: q, value: "(.*a){20}b"}]}
      ${TO_WEB}`);
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, staticBackend("web", echo.port), patterns));
  const long = "a".repeat(10_000);
  assert.equal((await call(`${gateway.url()}/${long}`)).status, 404);
  assert.equal((await call(`${gateway.url()}/x`, { headers: { "x-a": long } })).status, 404);
  assert.equal((await call(`${gateway.url()}/x?q=${long}`)).status, 404);
  assert.equal((await call(`${gateway.url()}/${long}b`)).status, 200);
});

test("a pattern that no bound allows is refused with the path of its field", async (t) => {
  const echo = await startEcho(contextOf(t));
  const value = "/((.{1,10}){1,10}){1,10}b";
  const matches: Readonly<Record<string, string>> = {
    "matches[0].path.value": `{path: {type: RegularExpression, value: "${value}"}}`,
    "matches[0].headers[0].value": `{headers: [{type: RegularExpression, name: x-a, value: "${value}"}]}`,
    "matches[0].queryParams[0].value": `{queryParams: [{type: RegularExpression, name: q, value: "${value}"}]}`,
  };
  for (const [path, match] of Object.entries(matches)) {
    const patterns = rulesOf(`    - matches: [${match}]
      ${TO_WEB}`);
    const gateway = await startGateway(contextOf(t), documents(GATEWAY, staticBackend("web", echo.port), patterns));
    const problems = [
      ...gateway.problems().map((problem) => JSON.stringify(problem)),
      ...gateway.translator.diagnostics().map(({ message }) => message),
    ].join();
    assert.ok(problems.includes(path) && problems.includes("the pattern repeats too often"), problems);
    const url = gateway.url();
    assert.notEqual((await call(`${url}/${"a".repeat(1000)}`, { headers: { "x-a": value } })).status, 200);
  }
});

test("a text that makes a pattern costly is answered with an error, never with another route", async (t) => {
  const echo = await startEcho(contextOf(t));
  const costly = rulesOf(`    - matches: [{headers: [{type: RegularExpression, name: x-a, value: "[ab]*a[ab]{300}c"}]}]
      ${TO_WEB}
    - ${TO_WEB}`);
  const gateway = await startGateway(contextOf(t), documents(GATEWAY, staticBackend("web", echo.port), costly));
  const noise = [...randomBytes(8000)].map((byte) => (byte % 2 === 0 ? "a" : "b")).join("");
  const refused = await call(gateway.url(), { headers: { "x-a": noise } });
  assert.deepEqual([refused.status, refused.body], [500, "matching this request to a route takes too long"]);
  assert.equal((await call(gateway.url(), { headers: { "x-a": "abc" } })).status, 200);
  assert.equal(echo.seen.length, 1);
});

async function secured(t: TestContext): Promise<number> {
  const echo = await startEcho(contextOf(t));
  const { certificate, key } = createLeaf(createAuthority("test", validNow()), ["a.test"], validNow());
  const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
    - {name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`;
  const secret = pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key });
  const objects = documents(gateway, secret, staticBackend("web", echo.port), route("web", "web"));
  return Number(new URL((await startGateway(contextOf(t), objects)).url(8443)).port);
}

test("a client cannot shake hands a second time on its connection", async (t) => {
  const port = await secured(t);
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, maxVersion: "TLSv1.2" });
  t.after(() => void socket.destroy());
  await once(socket, "secureConnect");
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  socket.on("error", resolve);
  socket.renegotiate({}, resolve);
  assert.match(String(await promise), /no renegotiation/i);
});
