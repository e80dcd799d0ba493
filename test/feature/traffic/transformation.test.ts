/** traffic.transformation through real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { echoed, startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  startWeb,
  staticBackend,
  type TestGateway,
} from "../../support/gateway/gateway.ts";
import { call, parseJson } from "../../support/clients/http.ts";
import { startHttp2Upstream } from "../../support/servers/http2-upstream.ts";
import { connectHttp2, sendHttp2 } from "../../support/clients/http2.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";

const TRANSFORMATION = "GwPolicy spec.traffic.transformation";

async function transformed(context: ProofContext, spec: string): Promise<TestGateway> {
  const echo = await startEcho(context);
  const policy = routePolicy("policy", "web", `  traffic: {transformation: ${spec}}`);
  return startWeb(context, echo.port, policy);
}

const named = (part: string, fields: readonly string[]) => fields.map((field) => `${TRANSFORMATION}.${part}.${field}`);

prove(
  named("request", ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]"]),
  "request headers follow expressions, and one that fails removes the header that a client sent",
  async (context) => {
    const gateway = await transformed(
      context,
      `{request: {set: [{name: x-path, value: request.path}, {name: x-fail, value: 'fail("no")'}], add: [{name: x-add, value: '"more"'}], remove: [x-gone]}}`,
    );
    const answer = await call(`${gateway.url()}/p`, {
      headers: { "x-path": "client", "x-fail": "client", "x-add": "one", "x-gone": "1" },
    });
    const { headers } = echoed(answer.body);
    assert.equal(headers["x-path"], "/p");
    assert.equal(headers["x-fail"], undefined);
    assert.equal(headers["x-add"], "one, more");
    assert.equal(headers["x-gone"], undefined);
  },
);

prove(named("request", ["set[].value"]), "pseudo-headers change method, path and authority", async (context) => {
  const gateway = await transformed(
    context,
    `{request: {set: [{name: ":path", value: '"/new?x=1"'}, {name: ":method", value: '"PUT"'}, {name: ":authority", value: '"other.test"'}]}}`,
  );
  const seen = echoed((await call(`${gateway.url()}/old`)).body);
  assert.deepEqual([seen.method, seen.url, seen.headers["host"]], ["PUT", "/new?x=1", "other.test"]);
});

prove(named("request", ["body"]), "a request body may be computed from the one that arrived", async (context) => {
  const gateway = await transformed(context, `{request: {body: '{"was": json(request.body).name}'}}`);
  const answer = await call(gateway.url(), { method: "POST", body: '{"name":"x"}' });
  assert.deepEqual(JSON.parse(echoed(answer.body).body), { was: "x" });
});

test("a scheme may be rewritten for what comes after, HTTP/2 upstreams included, but not into another protocol", async (t) => {
  const context = contextOf(t);
  const upstream = await startHttp2Upstream(context, (stream, { ":scheme": scheme, "x-uri": uri }) => {
    stream.respond({ ":status": 200 });
    stream.end(`${scheme} ${String(uri)}`);
  });
  const seenWith = async (scheme: string): Promise<string> => {
    const set = `[{name: ":scheme", value: '"${scheme}"'}, {name: x-uri, value: request.uri}]`;
    const policy = routePolicy("policy", "web", `  traffic: {transformation: {request: {set: ${set}}}}`);
    const backend = staticBackend("web", upstream.port);
    const gateway = await startGateway(context, documents(GATEWAY, backend, route("web", "web"), policy));
    const session = await connectHttp2(gateway.url());
    t.after(() => session.close());
    const answer = await sendHttp2(session, { ":path": "/p", ":authority": "a.test" });
    return answer.body.toString();
  };
  assert.equal(await seenWith("https"), "https https://a.test/p");
  assert.equal(await seenWith("file"), "http http://a.test/p");
});

test("a body over the limit goes on whole, is read once, and shows its first bytes", async (t) => {
  const context = contextOf(t);
  const echo = await startEcho(context);
  const says = (name: string) =>
    `transformation: {request: {set: [{name: ${name}, value: 'string(request.body == null) + " " + string(size(request.bodyPrefix))'}]}}`;
  const policies = [
    gatewayPolicy("early", `  traffic: {phase: PreRouting, ${says("x-early")}}`),
    routePolicy("late", "web", `  traffic: {${says("x-late")}}`),
  ];
  const rest = [GATEWAY, staticBackend("web", echo.port), route("web", "web"), ...policies];
  const gateway = await startGateway(context, documents(...rest));
  for (const [size, seen] of [
    [2_097_153, "true 2097152"],
    [2_097_152, "false 2097152"],
  ] as const) {
    const answer = await call(gateway.url(), { method: "POST", body: "x".repeat(size) });
    const { headers, body } = echoed(answer.body);
    assert.deepEqual([headers["x-early"], headers["x-late"], body.length], [seen, seen, size]);
  }
});

prove(
  [
    ...named("request", ["metadata"]),
    ...named("response", ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]"]),
  ],
  "response headers may use what the request left in metadata",
  async (context) => {
    const gateway = await transformed(
      context,
      `{request: {metadata: {who: 'request.headers["x-who"]'}}, response: {set: [{name: x-who, value: metadata.who}], add: [{name: x-code, value: string(response.code)}], remove: [x-upstream]}}`,
    );
    const { headers } = await call(gateway.url(), { headers: { "x-who": "me" } });
    assert.equal(headers["x-who"], "me");
    assert.equal(headers["x-code"], "200");
    assert.equal(headers["x-upstream"], undefined);
  },
);

prove(
  named("response", ["body", "metadata"]),
  "a response body may be computed, from the upstream's and from metadata of the response",
  async (context) => {
    const gateway = await transformed(
      context,
      `{response: {metadata: {code: response.code}, body: '{"url": json(response.body).url, "code": metadata.code}'}}`,
    );
    assert.deepEqual(parseJson((await call(`${gateway.url()}/u`)).body), { url: "/u", code: 200 });
  },
);

prove(
  ["condition", "policy.request.set[].name", "policy.request.set[].value"].map(
    (field) => `${TRANSFORMATION}.conditional[].${field}`,
  ),
  "the first transformation whose condition holds is used",
  async (context) => {
    const gateway = await transformed(
      context,
      `{conditional: [{condition: 'request.path == "/a"', policy: {request: {set: [{name: x-branch, value: '"a"'}]}}}, {policy: {request: {set: [{name: x-branch, value: '"else"'}]}}}]}`,
    );
    const branch = async (path: string) => echoed((await call(gateway.url() + path)).body).headers["x-branch"];
    assert.deepEqual([await branch("/a"), await branch("/b")], ["a", "else"]);
  },
);

const inBranch = (part: string, fields: readonly string[]) => named(`conditional[].policy.${part}`, fields);

prove(
  inBranch("request", ["add[].name", "add[].value", "remove[]", "body", "metadata"]),
  "the chosen branch may add, remove and compute everything about the request, and the other one does nothing",
  async (context) => {
    const gateway = await transformed(
      context,
      `{conditional: [{condition: 'request.path == "/a"', policy: {request: {metadata: {who: '"me"'}, add: [{name: x-add, value: metadata.who}], remove: [x-gone], body: '"was " + string(request.body)'}}}, {policy: {request: {set: [{name: x-branch, value: '"else"'}]}}}]}`,
    );
    const options = { method: "POST", headers: { "x-add": "one", "x-gone": "1" }, body: "text" };
    const changed = echoed((await call(`${gateway.url()}/a`, options)).body);
    assert.deepEqual(
      [changed.headers["x-add"], changed.headers["x-gone"], changed.body],
      ["one, me", undefined, "was text"],
    );
    const other = echoed((await call(`${gateway.url()}/b`, options)).body);
    assert.deepEqual([other.headers["x-add"], other.headers["x-gone"], other.body], ["one", "1", "text"]);
  },
);

prove(
  inBranch("response", ["set[].name", "set[].value", "add[].name", "add[].value", "remove[]", "body", "metadata"]),
  "the branch that the request chose edits its response too",
  async (context) => {
    const gateway = await transformed(
      context,
      `{conditional: [{condition: 'request.path == "/a"', policy: {response: {metadata: {code: string(response.code)}, set: [{name: x-set, value: metadata.code}], add: [{name: x-add, value: '"more"'}], remove: [x-upstream], body: '"code " + metadata.code'}}}]}`,
    );
    const changed = await call(`${gateway.url()}/a`);
    const { "x-set": set, "x-add": add, "x-upstream": upstream } = changed.headers;
    assert.deepEqual([set, add, upstream, changed.body], ["200", "more", undefined, "code 200"]);
    const other = await call(`${gateway.url()}/b`);
    assert.deepEqual(
      [other.headers["x-set"], other.headers["x-upstream"], echoed(other.body).url],
      [undefined, "echo", "/b"],
    );
  },
);
