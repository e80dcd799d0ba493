/** `frontend.accessLog` of a GwPolicy: which requests get a line, and what stands in it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient } from "../../support/gateway/data-plane.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import type { TestGateway } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { keepLines, type KeptLines } from "../../support/gateway/log-lines.ts";
import { contextOf, prove, type ProofContext } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const FIELD = "GwPolicy spec.frontend.accessLog";

interface Logged extends KeptLines {
  readonly gateway: TestGateway;
  /** Of the backend. */
  readonly port: number;
  readonly url: string;
}

/** @param says `accessLog` in flow YAML; empty: no policy @param port of another backend than the one that echoes */
async function logged(
  context: ProofContext,
  says: string,
  options: Parameters<typeof keepLines>[1] & { readonly port?: number; readonly more?: readonly string[] } = {},
): Promise<Logged> {
  const port = options.port ?? (await startEcho(context)).port;
  const lines = keepLines(context, options);
  const policy = says === "" ? [] : [gatewayPolicy("log", `  frontend: {accessLog: ${says}}`)];
  const objects = [GATEWAY, staticBackend("web", port), route("web", "web"), ...policy, ...(options.more ?? [])];
  const gateway = await startGateway(context, documents(...objects), { telemetry: { accessLog: lines.accessLog } });
  return { ...lines, gateway, port, url: gateway.url() };
}

test("without a policy a line has the legacy fields, and nothing of the query", async (t) => {
  const { url, port, nextFields } = await logged(contextOf(t), "");
  const { headers } = await call(`${url}/path?key=secret`, { headers: { host: "a.test" } });
  const { time, duration, "src.addr": source, ...fields } = await nextFields();
  assert.match(String(time), /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.match(String(duration), /^\d+ms$/);
  assert.match(String(source), /^127\.0\.0\.1:\d+$/);
  assert.deepEqual(fields, {
    level: "info",
    scope: "request",
    "request.id": headers["x-request-id"],
    gateway: "default/gw",
    listener: "http",
    route_rule: "rule",
    route: "default/web",
    endpoint: `127.0.0.1:${port}`,
    "http.method": "GET",
    "http.host": "a.test",
    "http.path": "/path",
    "http.version": "HTTP/1.1",
    "http.status": 200,
    protocol: "http",
  });
});

prove(`${FIELD}.preset`, "the preset Otel gives the same values under the names of OpenTelemetry", async (context) => {
  const { url, port, nextFields } = await logged(context, "{preset: Otel}");
  const sent = { host: "a.test", "x-request-id": "of-the-client" };
  await call(`${url}/path?a=1&api_key=abc&b`, { headers: sent });
  const { time, "client.port": clientPort, "gwp.duration_ms": duration, ...fields } = await nextFields();
  assert.match(String(time), /^20/);
  assert.equal(typeof duration, "number");
  assert.ok(Number.isSafeInteger(clientPort));
  assert.deepEqual(fields, {
    level: "info",
    scope: "request",
    "gwp.request.id": "of-the-client",
    "gwp.gateway": "default/gw",
    "gwp.listener": "http",
    "gwp.route.rule": "rule",
    "gwp.route": "default/web",
    "server.address": "127.0.0.1",
    "server.port": port,
    "client.address": "127.0.0.1",
    "http.request.method": "GET",
    "gwp.request.host": "a.test",
    "url.path": "/path",
    "url.query": "a=1&api_key=REDACTED&b",
    "network.protocol.name": "http",
    "network.protocol.version": "1.1",
    "http.response.status_code": 200,
    "gwp.protocol": "http",
  });
});

prove(`${FIELD}.filter`, "only a request for which the filter is true gets a line", async (context) => {
  const filter = `{filter: 'response.code >= 500 || (request.headers["x-log"] == "yes")'}`;
  const { url, nextFields } = await logged(context, filter);
  // The first one has no such header: the filter fails there.
  await call(`${url}/quiet`);
  await call(`${url}/refused`, { headers: { "x-log": "no" } });
  await call(`${url}/asked`, { headers: { "x-log": "yes" } });
  await call(`${url}/status/503`);
  assert.equal((await nextFields())["http.path"], "/asked");
  assert.equal((await nextFields())["http.path"], "/status/503");
});

test("a filter sees what is known at the end, and what is no boolean lets nothing through", async (t) => {
  const known =
    'request.endTime >= request.startTime && proxy.route.name == "web" && backend.name != "" && has(proxy.responseProcessingDuration)';
  const { url, nextFields, gateway, port } = await logged(contextOf(t), `{filter: '${known}'}`);
  await call(`${url}/first`);
  assert.equal((await nextFields())["http.path"], "/first");
  const objects = (filter: string): string =>
    documents(
      GATEWAY,
      staticBackend("web", port),
      route("web", "web"),
      gatewayPolicy("log", `  frontend: {accessLog: {filter: '${filter}'}}`),
    );
  await gateway.change(objects("request.headers.size()"));
  await call(`${url}/second`);
  await gateway.change(objects("true"));
  await call(`${url}/third`);
  assert.equal((await nextFields())["http.path"], "/third");
});

const ADD = [`${FIELD}.attributes.add[].name`, `${FIELD}.attributes.add[].expression`];

prove(ADD, "an attribute is added with its type, and one that fails or is null is not", async (context) => {
  const add = [
    ["text", 'request.headers["x-tag"]'],
    ["int", "size(request.path)"],
    ["double", "0.5"],
    ["bool", "response.code == 200"],
    ["list", '[1, "two", null, true]'],
    ["map", '{"a": {"b": [1.5]}}'],
    ["none", "null"],
    ["fails", 'request.headers["x-missing"]'],
    ["time", 'timestamp("2020-01-02T03:04:05Z")'],
    ["bytes", 'b"abc"'],
  ].map(([name, expression]) => `{name: ${name}, expression: '${expression}'}`);
  const { url, nextFields } = await logged(context, `{attributes: {add: [${add.join(", ")}]}}`);
  await call(`${url}/path`, { headers: { "x-tag": "blue" } });
  const fields = await nextFields();
  const { text, int, double, bool, list, map, none, fails, time, bytes } = fields;
  assert.deepEqual(
    { text, int, double, bool, list, map, none, fails, bytes },
    {
      text: "blue",
      int: 5,
      double: 0.5,
      bool: true,
      list: [1, "two", null, true],
      map: { a: { b: [1.5] } },
      none: undefined,
      fails: undefined,
      bytes: "abc",
    },
  );
  // The time is that of the line; an attribute of this name has another one.
  assert.notEqual(time, "2020-01-02T03:04:05Z");
  assert.equal(fields["gwp.time"], "2020-01-02T03:04:05Z");
});

prove(
  ADD,
  "an attribute takes the place of a default field of its name, also when it has no value",
  async (context) => {
    const add = `[{name: http.path, expression: '"/masked"'}, {name: src.addr, expression: 'request.headers["x-missing"]'}]`;
    const { url, next } = await logged(context, `{attributes: {add: ${add}}}`);
    await call(`${url}/private`);
    const line = await next();
    const fields = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual([fields["http.path"], fields["src.addr"]], ["/masked", undefined]);
    assert.equal(line.split('"http.path"').length, 2, "a name stands once");
  },
);

prove(ADD, "a flattened map becomes one attribute for each of its entries", async (context) => {
  const add = `[{name: all, expression: 'flatten({"a": 1, "b": {"c": [2]}})'}, {name: deep, expression: 'flattenRecursive({"a": 1, "b": {"c": [2]}})'}, {name: http, expression: 'flatten({"path": "/replaced"})'}]`;
  const { url, next } = await logged(context, `{attributes: {add: ${add}}}`);
  await call(`${url}/path`);
  const line = await next();
  const fields = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual(
    [fields["all.a"], fields["all.b"], fields["deep.a"], fields["deep.b.c.0"], fields["http.path"], fields["all"]],
    [1, { c: [2] }, 1, 2, "/replaced", undefined],
  );
  assert.equal(line.split('"http.path"').length, 2, "a name stands once");
});

prove(`${FIELD}.attributes.remove[]`, "a default field that is removed stands in no line", async (context) => {
  const legacy = await logged(context, `{attributes: {remove: [src.addr, http.host, url.path]}}`);
  await call(`${legacy.url}/path`);
  const fields = await legacy.nextFields();
  assert.deepEqual([fields["src.addr"], fields["http.host"], fields["http.path"]], [undefined, undefined, "/path"]);
});

prove(
  `${FIELD}.attributes.remove[]`,
  "the names that are removed are those of the preset in force",
  async (context) => {
    const remove = "[client.address, client.port, http.path, url.query]";
    const otel = await logged(context, `{preset: Otel, attributes: {remove: ${remove}}}`);
    await call(`${otel.url}/path?q`);
    const fields = await otel.nextFields();
    assert.deepEqual(
      [fields["client.address"], fields["client.port"], fields["url.query"], fields["url.path"]],
      [undefined, undefined, undefined, "/path"],
    );
  },
);

test("a line of text has its pairs apart, whatever a client puts into them", async (t) => {
  const hostile = 'a b"c=d\\e\u0001\u007f\u0085\u2028\u202ef';
  const add = `[{name: bare, expression: '"v1.2/x"'}, {name: header, expression: 'json(request.headers["x-json"])'}, {name: "na me", expression: 'true'}, {name: map, expression: '{"k": 1}'}, {name: line, expression: '"one\\nhttp.status=200"'}, {name: empty, expression: '""'}]`;
  const { url, next } = await logged(contextOf(t), `{attributes: {add: ${add}}}`, { format: "text" });
  // As JSON in ASCII, because a header holds neither control characters nor what is beyond Latin-1.
  const ascii = JSON.stringify(hostile).replaceAll(
    /[^ -~]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  await call(`${url}/path`, { headers: { host: "a.test", "x-json": ascii } });
  const line = await next();
  const head =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)\tinfo\trequest request\.id=\S+ gateway=default\/gw listener=http /;
  assert.match(line, head);
  assert.match(
    line,
    / http\.method=GET http\.host=a\.test http\.path=\/path http\.version=HTTP\/1\.1 http\.status=200 /,
  );
  const escaped = String.raw`"a b\"c=d\\e\u0001\u007f\u0085\u2028\u202ef"`;
  const tail = ` bare=v1.2/x header=${escaped} "na me"=true map="{\\"k\\":1}" line="one\\nhttp.status=200" empty=""`;
  assert.equal(line.slice(line.indexOf(" bare=")), tail);
});

test("a refused request and one that nobody serves get a line too, with the reason", async (t) => {
  const { url, nextFields } = await logged(contextOf(t), "{preset: Otel}");
  const client = rawClient(Number(new URL(url).port), "GET /%2e%2e/x HTTP/1.1\r\nhost: a.test\r\n\r\n");
  await client.closed();
  const refused = await nextFields();
  assert.deepEqual([refused["http.response.status_code"], refused["error.type"]], [400, "InvalidRequest"]);
  assert.match(String(refused["error.message"]), /dot segment/);
});

test("expressions see both bodies at the end, and hold up neither", async (t) => {
  const context = contextOf(t);
  let finish = (): void => undefined;
  const upstream = await startUpstream((request, response) => {
    if (request.url === "/stream") {
      response.write("first,");
      finish = () => response.end("last");
      return;
    }
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => response.end(`got ${body.length}`));
  });
  t.after(() => upstream.close());
  const add = `[{name: asked, expression: 'string(request.body)'}, {name: start, expression: 'size(request.bodyPrefix)'}, {name: answered, expression: 'string(response.body)'}]`;
  const { url, nextFields } = await logged(context, `{attributes: {add: ${add}}}`, {
    port: upstream.port,
    more: [gatewayPolicy("small", "  frontend: {http: {maxBufferSize: 1000}}")],
  });
  await call(`${url}/`, { method: "POST", body: "hello" });
  const small = await nextFields();
  assert.deepEqual([small["asked"], small["start"], small["answered"]], ["hello", 5, "got 5"]);
  // Larger than may be held: forwarded all the same.
  assert.equal((await call(`${url}/`, { method: "POST", body: "x".repeat(5000) })).body, "got 5000");
  const large = await nextFields();
  assert.deepEqual([large["asked"], large["start"], large["answered"]], [undefined, 1000, "got 5000"]);
  // What a stream has sent so far reaches the client before it ends.
  const response = await fetch(`${url}/stream`);
  const reader = response.body?.getReader();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), "first,");
  finish();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), "last");
  assert.equal((await nextFields())["answered"], "first,last");
});

test("values are cut, and of a map that is too large only a part stands in the line", async (t) => {
  const add = `[{name: long, expression: 'string(request.body)'}, {name: many, expression: 'json(request.body)'}]`;
  const { url, next, nextFields } = await logged(contextOf(t), `{attributes: {add: ${add}}}`);
  await call(`${url}/`, { method: "POST", body: "é".repeat(200_000) });
  const { long } = await nextFields();
  assert.ok(typeof long === "string" && long.length <= 65_537 && long.endsWith("é…"));
  const items = JSON.stringify(Array.from({ length: 2000 }, (_, at) => `${at}`.padEnd(100)));
  await call(`${url}/`, { method: "POST", body: items });
  const line = await next();
  assert.ok(line.length < 200_000, `${line.length} characters`);
  const { many } = JSON.parse(line) as { many: string[] };
  assert.ok(many.length > 100 && many.length < 2000, `${many.length} items`);
});

test("secrets that a policy has checked stand in no line", async (t) => {
  const key = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {alice: '{"key": "k-12345", "metadata": {"team": "red"}}'}
`;
  const auth = gatewayPolicy(
    "auth",
    "  traffic: {phase: PreRouting, apiKeyAuthentication: {secretRef: {name: keys}, location: {queryParameter: {name: ticket}}}}",
  );
  const add = `[{name: key, expression: apiKey.key}, {name: who, expression: flatten(apiKey)}, {name: team, expression: apiKey.team}]`;
  const { url, next } = await logged(contextOf(t), `{preset: Otel, attributes: {add: ${add}}}`, { more: [key, auth] });
  const answer = await call(`${url}/?ticket=k-12345&a=1`);
  assert.equal(answer.status, 200, answer.body);
  const line = await next();
  assert.ok(!line.includes("k-12345"), line);
  const fields = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual([fields["key"], fields["who.key"], fields["team"]], ["<redacted>", "<redacted>", "red"]);
  assert.equal(fields["url.query"], "ticket=REDACTED&a=1");
});

test("a line has the id of its answer, whoever made it", async (t) => {
  const own = await startUpstream((_request, response) => response.setHeader("x-request-id", "of-the-backend").end());
  t.after(() => own.close());
  const removes = routePolicy("r", "bare", "  traffic: {headerModifiers: {response: {remove: [x-request-id]}}}");
  const more = [staticBackend("own", own.port), route("own", "own", "/own"), route("bare", "own", "/bare"), removes];
  const { gateway, url, nextFields } = await logged(contextOf(t), "", { more });
  const ids = async (path: string, headers: Record<string, string>): Promise<unknown[]> => {
    const answer = await call(url + path, { headers });
    return [answer.headers["x-request-id"], (await nextFields())["request.id"]];
  };
  const named = { "x-request-id": "abc-123" };
  for (const path of ["/", "/bare", "/refused/%2e%2e/x", "/nowhere"])
    assert.deepEqual(await ids(path, named), ["abc-123", "abc-123"], path);
  assert.deepEqual(await ids("/own", named), ["of-the-backend", "of-the-backend"]);
  assert.deepEqual(await ids("/", { ...named, host: "no host" }), ["abc-123", "abc-123"]);
  for (const path of ["/", "/%2e%2e/x"]) {
    const [answered, line] = await ids(path, { "x-request-id": "no id" });
    assert.match(String(answered), /^[0-9a-f-]{36}$/);
    assert.equal(line, answered);
  }
  await gateway.change(GATEWAY);
  assert.deepEqual(await ids("/", named), ["abc-123", "abc-123"], "no route");
});

test("a request that a policy has ended names the policy and its field", async (t) => {
  const secret = `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {alice: k-12345}
`;
  const policies: Readonly<Record<string, readonly [traffic: string, field: string]>> = {
    deny: ["authorization: {action: Deny, policy: {matchExpressions: ['true']}}", " spec.traffic.authorization"],
    keys: ["apiKeyAuthentication: {secretRef: {name: keys}}", " spec.traffic.apiKeyAuthentication"],
    basic: ["basicAuthentication: {users: ['a:$apr1$x$y']}", " spec.traffic.basicAuthentication"],
    limit: ["rateLimit: {local: [{requests: 1, unit: Hours}]}", " spec.traffic.rateLimit.local"],
    long: ["buffer: {request: {maxBytes: 1}}", " spec.traffic.buffer"],
    csrf: ["csrf: {}", " spec.traffic.csrf"],
    asked: ["extAuth: {url: 'http://127.0.0.1:1', grpc: {}}", " spec.traffic.extAuth"],
    broken: ["jwtAuthentication: {providers: [{issuer: i, jwks: {inline: '{'}}]}", ""],
  };
  const more = Object.entries(policies).flatMap(([name, [traffic]]) => [
    route(name, "web", `/${name}`),
    routePolicy(`p-${name}`, name, `  traffic: {${traffic}}`),
  ]);
  const { url, nextFields } = await logged(contextOf(t), "", { more: [secret, ...more] });
  const sent = {
    headers: { origin: "http://elsewhere", authorization: "Bearer k-wrong" },
    method: "POST",
    body: "long",
  };
  for (const [name, [, field]] of Object.entries(policies)) {
    if (name === "limit") {
      await call(`${url}/${name}`, sent);
      await nextFields();
    }
    const answer = await call(`${url}/${name}`, sent);
    const { error } = await nextFields();
    assert.ok(answer.status >= 400, `${name} ${answer.status}`);
    assert.ok(String(error).endsWith(`(GwPolicy default/p-${name}${field})`), `${name}: ${String(error)}`);
    assert.doesNotMatch(String(error), /k-wrong|k-12345/);
    assert.doesNotMatch(answer.body, /default\//, "clients learn nothing of it");
  }
});

test("where everything is logged, lines say which connection they are of", async (t) => {
  const { url, nextFields } = await logged(contextOf(t), "", { level: "debug" });
  await call(url);
  assert.ok(Number((await nextFields())["connection.id"]) >= 1);
});
