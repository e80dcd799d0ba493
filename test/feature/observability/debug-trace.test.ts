/** `/debug/trace`: an operator sees each step of one request, and no credential; nobody else notices. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthorizationAction } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  endpoints,
  listener,
  policy,
  route,
  serviceBackend,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { ON_ROUTE, rulesOfRoute, startTracedPlane } from "../../support/gateway/traced-plane.ts";
import { call } from "../../support/clients/http.ts";
import { messagesOf, openWatch, type SentEvent } from "../../support/clients/trace.ts";
import { documents, GATEWAY, route as routeOf, startGateway } from "../../support/gateway/gateway.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";
import { connectMcp } from "../../support/clients/mcp.ts";

const SECRET = "s3cr3t-credential";
function types(events: readonly SentEvent[]): string[] {
  return events.map(({ message }) => message.type);
}

test("each step of a request is shown in order, with stages, policies, route, endpoint, call and bodies", async (t) => {
  const units = [
    { unit: { case: "headerModifiers" as const, value: { request: { set: [{ name: "x-a", value: "1" }] } } } },
  ];
  const plane = await startTracedPlane(t, [
    policy("rules", rulesOfRoute(AuthorizationAction.ALLOW, "request.method == 'POST'", "request.path == '/none'")),
    policy("edit", { targets: [ON_ROUTE], units }),
  ]);
  const watch = await openWatch(plane.proxy);
  assert.equal((await call(`${plane.url}/shop?q=1`, { method: "POST", body: "in" })).status, 200);
  const events = await watch.events();
  assert.deepEqual(
    types(events).filter((type) => type !== "cel"),
    [
      "requestStarted",
      "requestSnapshot",
      "policySelection",
      "policySelection",
      "policySelection",
      "requestSnapshot",
      "routeSelection",
      "policySelection",
      "authorizationResult",
      "policy",
      "policy",
      "requestSnapshot",
      "policySelection",
      "endpointSelection",
      "backendCallStart",
      "requestSnapshot",
      "responseSnapshot",
      "backendCallResult",
      "responseSnapshot",
      "responseSnapshot",
      "bodySnapshot",
      "bodySnapshot",
      "requestFinished",
    ],
  );
  assert.deepEqual(
    events.flatMap(({ message }) => (typeof message["stage"] === "string" ? [message["stage"]] : [])),
    [
      "initial request",
      "gateway policies",
      "route policies",
      "final request",
      "raw response",
      "backend response ready",
      "final response",
      "final request",
      "response",
    ],
  );
  assert.deepEqual(
    messagesOf(events, "policySelection").map(({ phase }) => phase),
    ["frontend", "listenerFrontend", "gateway", "route", "backend"],
  );
  assert.deepEqual(messagesOf(events, "routeSelection"), [
    {
      type: "routeSelection",
      selectedRoute: { route: "HTTPRoute default/r", rule: "0" },
      evaluatedRoutes: ["HTTPRoute default/r"],
    },
  ]);
  assert.deepEqual(messagesOf(events, "authorizationResult"), [
    {
      type: "authorizationResult",
      rules: [
        { name: "request.method == 'POST'", matched: true, mode: "allow" },
        { name: "request.path == '/none'", matched: false, mode: "allow" },
      ],
      result: "allow",
    },
  ]);
  const [result] = messagesOf(events, "backendCallResult");
  assert.deepEqual([result?.["status"], result?.["error"]], [200, null]);
  const [cel] = messagesOf(events, "cel");
  assert.deepEqual([cel?.["expr"], cel?.["result"]], ["request.method == 'POST'", true]);
  const bodies = messagesOf(events, "bodySnapshot").map(({ body }) => Buffer.from(String(body), "base64").toString());
  assert.deepEqual(bodies, ["in", "hello"]);
  assert.deepEqual(events.at(-1)?.message, { type: "requestFinished", status: 200, error: null });
  for (const { eventStart, eventEnd } of events) assert.ok(eventEnd >= (eventStart ?? 0));
  const policies = events.filter(({ message }) => message.type === "policy");
  assert.deepEqual(
    policies.map(({ message, severity, scope }) => [message["kind"], severity, scope]),
    [
      ["authorization", "success", ["HTTPRoute default/r 0", "GwPolicy default/rules spec.traffic.authorization"]],
      ["headerModifiers", "success", ["HTTPRoute default/r 0", "GwPolicy default/edit spec.traffic.headerModifiers"]],
    ],
  );
});

test("a denial is an error, names the rule, and says which steps were skipped", async (t) => {
  const units = [
    { unit: { case: "headerModifiers" as const, value: { request: { set: [{ name: "x-a", value: "1" }] } } } },
  ];
  const plane = await startTracedPlane(t, [
    policy("rules", rulesOfRoute(AuthorizationAction.DENY, "request.path == '/no'")),
    policy("edit", { targets: [ON_ROUTE], units }),
  ]);
  const watch = await openWatch(plane.proxy);
  assert.equal((await call(`${plane.url}/no`)).status, 403);
  const events = await watch.events();
  const denied = events.find(({ message }) => message.type === "authorizationResult");
  assert.deepEqual([denied?.severity, denied?.message["result"]], ["error", "deny"]);
  const [first, second] = messagesOf(events, "policy").map(({ kind, result }) => ({ kind, ...(result as object) }));
  assert.deepEqual(
    { ...first, snapshot: undefined },
    {
      kind: "authorization",
      type: "apply",
      details: { outcome: "refused", error: "authorization_failed", status: 403 },
      snapshot: undefined,
    },
  );
  assert.deepEqual(second, { kind: "headerModifiers", type: "skip", reason: "authorization ended the request before" });
  assert.deepEqual(
    [events.at(-1)?.severity, events.at(-1)?.message["status"], events.at(-1)?.message["error"]],
    ["error", 403, "authorization_failed"],
  );
});

test("a request without a route, and one whose backend is away, are errors", async (t) => {
  const plane = await startDataPlane([listener(), route("r", [to("b")]), staticBackend("b", 1)]);
  t.after(() => plane.proxy.close());
  const lost = await openWatch(plane.proxy);
  await call(`${plane.url}/`);
  const away = await lost.events();
  const result = away.find(({ message }) => message.type === "backendCallResult");
  assert.deepEqual([result?.severity, result?.message["error"]], ["error", "upstream_unreachable"]);
  await plane.proxy.apply({ set: [], removed: [{ type: "HttpRoute", key: "httproute/default/r" }] });
  const watch = await openWatch(plane.proxy);
  await call(`${plane.url}/`);
  const events = await watch.events();
  const selection = events.find(({ message }) => message.type === "routeSelection");
  assert.deepEqual([selection?.severity, selection?.message["selectedRoute"]], ["error", null]);
  assert.equal(events.at(-1)?.message["error"], "route_not_found");
});

test("an expression chooses the request; several watches are served by one request, and each gets one", async (t) => {
  const plane = await startTracedPlane(t);
  const paid = await openWatch(plane.proxy, { expression: "request.path.startsWith('/pay')" });
  const any = await openWatch(plane.proxy);
  const also = await openWatch(plane.proxy);
  await call(`${plane.url}/shop`);
  await call(`${plane.url}/pay`);
  const pathOf = ([, snapshot]: readonly SentEvent[]): unknown =>
    (snapshot?.message["requestState"] as { request: { path: string } } | undefined)?.request.path;
  assert.deepEqual(
    [pathOf(await any.events()), pathOf(await also.events()), pathOf(await paid.events())],
    ["/shop", "/shop", "/pay"],
  );
  const wrong = await plane.proxy.watch({ expression: "request.", showsSecrets: false });
  assert.ok(!wrong.ok && wrong.code === "invalid_expression");
  const never = await openWatch(plane.proxy, { expression: "request.headers['x'] == '1'" });
  await call(`${plane.url}/`);
  never.close();
  assert.deepEqual(await never.events(), []);
});

test("credentials of clients are masked unless they are asked for, and those of the gateway always", async (t) => {
  const upstream = await startUpstream((_request, response) => {
    response.setHeader("set-cookie", `s=${SECRET}`);
    response.end();
  });
  t.after(() => upstream.close());
  const apiKey = {
    location: { location: { case: "header" as const, value: { name: "X-Own-Key", prefix: "" } } },
    keys: [],
  };
  const plane = await startDataPlane([
    listener(),
    route("r", [to("b")]),
    staticBackend("b", upstream.port, { auth: { kind: { case: "key", value: { value: "gateway-own-secret" } } } }),
    policy("keys", {
      targets: [{ target: { case: "route", value: "httproute/default/other" } }],
      units: [{ unit: { case: "apiKeyAuthentication", value: apiKey } }],
    }),
  ]);
  t.after(() => plane.proxy.close());
  const masked = await openWatch(plane.proxy);
  const shown = await openWatch(plane.proxy, { showsSecrets: true });
  const headers = {
    authorization: `Bearer ${SECRET}`,
    cookie: `a=${SECRET}`,
    "proxy-authorization": SECRET,
    "x-api-key": SECRET,
    "x-own-key": SECRET,
  };
  await call(`${plane.url}/?access_token=${SECRET}`, { headers });
  const text = JSON.stringify(await masked.events());
  assert.ok(!text.includes(SECRET), "a credential is shown");
  assert.ok(!text.includes("gateway-own-secret"));
  assert.match(text, /<redacted>/);
  assert.match(text, /"stage":"backend auth"/);
  const whole = JSON.stringify(await shown.events());
  assert.ok(whole.includes(SECRET));
  assert.ok(!whole.includes("gateway-own-secret"), "the gateway's own credential is shown");
});

test("the choice among endpoints shows candidates, scores and the cause", async (t) => {
  const upstream = await startUpstream((_request, response) => void response.end());
  t.after(() => upstream.close());
  const key = "backend/default/svc";
  const plane = await startDataPlane([
    listener(),
    route("r", [to("svc")]),
    serviceBackend(key, 80),
    endpoints(key, [upstream.port, upstream.port]),
  ]);
  t.after(() => plane.proxy.close());
  const watch = await openWatch(plane.proxy);
  assert.equal((await call(plane.url)).status, 200);
  const [selection] = messagesOf(await watch.events(), "endpointSelection");
  const endpoint = `127.0.0.1:${upstream.port}`;
  assert.equal(selection?.["chosen"], endpoint);
  assert.equal(selection?.["cause"], "score");
  const [candidate = {}] = (selection?.["candidates"] ?? []) as readonly Record<string, unknown>[];
  assert.deepEqual(Object.keys(candidate), [
    "endpoint",
    "health",
    "latencySeconds",
    "pendingRequests",
    "capacity",
    "score",
    "evicted",
  ]);
});

test("a call of a model shows the provider, both formats, and the bodies before and after translation", async (t) => {
  const seen: string[] = [];
  const provider = await startUpstream((request, response) => {
    request.on("data", (chunk: Buffer) => seen.push(chunk.toString()));
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({ id: "1", choices: [{ index: 0, message: { role: "assistant", content: "yes" } }], usage: {} }),
      );
    });
  });
  t.after(() => provider.close());
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {custom: {model: m, formats: [{type: Completions}]}, host: 127.0.0.1, port: ${provider.port}}}`;
  const gateway = await startGateway(t, documents(GATEWAY, backend, routeOf("ai", "ai")));
  const watch = await openWatch(gateway.proxy);
  const body = JSON.stringify({ model: "x", max_tokens: 5, messages: [{ role: "user", content: "hi" }] });
  const answer = await call(`${gateway.url()}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  assert.equal(answer.status, 200, answer.body);
  const events = await watch.events();
  assert.deepEqual(messagesOf(events, "llmRouteResolved"), [
    { type: "llmRouteResolved", provider: "custom", routeType: "Messages" },
  ]);
  assert.deepEqual(messagesOf(events, "llmRequestDetected"), [
    {
      type: "llmRequestDetected",
      provider: "custom",
      inputFormat: "Messages",
      upstreamRouteType: "Completions",
      requestModel: "m",
      streaming: false,
    },
  ]);
  assert.deepEqual(
    messagesOf(events, "bodySnapshot").map(({ stage }) => stage),
    ["llm request before translation", "final request", "llm raw response", "response"],
  );
  assert.equal(messagesOf(events, "endpointSelection").length, 1);
});

test("a list of several MCP servers shows what each of them answered", async (t) => {
  const servers = await Promise.all(["one", "two"].map((name) => startMcpServer(t, { name })));
  const targets = servers.map(({ port }, at) => `{name: t${at}, static: {host: 127.0.0.1, port: ${port}}}`);
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp: {targets: [${targets.join(", ")}]}`;
  const gateway = await startGateway(t, documents(GATEWAY, backend, routeOf("tools", "tools", "/mcp")));
  const { client } = await connectMcp(t, `${gateway.url()}/mcp`);
  const watch = await openWatch(gateway.proxy, { expression: "request.method == 'POST'" });
  await client.listTools();
  const events = await watch.events();
  const [fanOut] = messagesOf(events, "mcpFanout");
  const outcomes = (fanOut?.["targets"] ?? []) as readonly Record<string, unknown>[];
  assert.deepEqual(
    outcomes.map(({ target, method, outcome }) => [target, method, outcome]),
    [
      ["t0", "tools/list", "ok"],
      ["t1", "tools/list", "ok"],
    ],
  );
  for (const { itemsBefore, itemsAfter } of outcomes) assert.ok(Number(itemsBefore) > 0 && itemsAfter === itemsBefore);
});
