/** Events of `/debug/trace` that only some requests have: one row for each, through real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  documents,
  GATEWAY,
  gatewayPolicy,
  route,
  routePolicy,
  startGateway,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import { messagesOf, openWatch, type SentEvent } from "../../support/clients/trace.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { replicaService, servicePolicy, startReplicas } from "../../support/servers/replicas.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";

interface Row {
  readonly what: string;
  manifests(port: number, context: ProofContext): string | Promise<string>;
  readonly request?: {
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  };
  /** Requests before the one that is followed. */
  readonly before?: number;
  /** Status of the answer; 200 unless said otherwise. */
  readonly status?: number;
  check(events: readonly SentEvent[], port: number): void;
}

const JSON_BODY = { "content-type": "application/json" };
const BODY_LIMIT = 256 * 1024;

function web(port: number, ...more: readonly string[]): string {
  return documents(GATEWAY, staticBackend("web", port), route("web", "web"), ...more);
}

function tracing(sampling: string): (port: number) => string {
  return (port) => {
    const spec = `{backendRef: {group: gwproxy.dev, kind: GwBackend, name: web}, randomSampling: "${sampling}"}`;
    return web(port, gatewayPolicy("tracing", `  frontend: {tracing: ${spec}}`));
  };
}

const ROWS: readonly Row[] = [
  {
    what: "a long body is cut, and says so; a short one does not",
    manifests: (port) => web(port),
    request: { body: "x".repeat(BODY_LIMIT + 1) },
    check(events) {
      const bodies = messagesOf(events, "bodySnapshot").map(({ stage, body, truncated }) => [
        stage,
        Buffer.from(String(body), "base64").length,
        truncated,
      ]);
      assert.deepEqual(bodies, [
        ["final request", BODY_LIMIT, true],
        ["response", 2, undefined],
      ]);
    },
  },
  ...[true, false].map((decision): Row => ({
    what: `the request is ${decision ? "" : "not "}sampled for tracing`,
    manifests: tracing(String(decision)),
    check: (events) => assert.deepEqual(messagesOf(events, "traceSampling"), [{ type: "traceSampling", decision }]),
  })),
  {
    what: "an external service was asked, and what it answered",
    manifests: (port) =>
      web(
        port,
        staticBackend("checker", port),
        routePolicy(
          "check",
          "web",
          `  traffic: {extAuth: {backendRef: {group: gwproxy.dev, kind: GwBackend, name: checker}, http: {path: '"/check"'}}}`,
        ),
      ),
    check(events, port) {
      assert.deepEqual(messagesOf(events, "policyEvent"), [
        {
          type: "policyEvent",
          kind: "ExtAuthz",
          details: { method: "GET", path: "/check", target: `127.0.0.1:${port}`, status: 200 },
        },
      ]);
      assert.equal(events.find(({ message }) => message.type === "policyEvent")?.severity, "success");
    },
  },
  {
    what: "each setting of the port is shown with the field that supplies it, without those that lost",
    manifests: (port) =>
      web(
        port,
        gatewayPolicy("edge", "  frontend: {http: {maxBufferSize: 1Mi}, tcp: {keepalive: {retries: 3}}}"),
        gatewayPolicy("port", "  frontend: {http: {maxBufferSize: 2Mi}}").replace("name: gw}", "name: gw, port: 8080}"),
      ),
    check(events) {
      const [gateway, listener] = messagesOf(events, "policySelection").map(({ effectivePolicy }) => effectivePolicy);
      assert.deepEqual(gateway, [
        { policy: "tcp.keepalive", origin: "GwPolicy default/edge spec.frontend.tcp.keepalive" },
      ]);
      assert.deepEqual(listener, [{ policy: "http", origin: "GwPolicy default/port spec.frontend.http" }]);
    },
  },
  {
    what: "the filters of one backendRef are policies of their own",
    manifests: (port) =>
      documents(
        GATEWAY,
        staticBackend("web", port),
        route("web", "web").replace(
          "name: web}]",
          "name: web, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: b}]}}]}]",
        ),
      ),
    check(events) {
      const selected = messagesOf(events, "policySelection").find(({ phase }) => phase === "subBackend");
      const policies = (selected?.["effectivePolicy"] ?? []) as readonly { readonly policy: string }[];
      assert.deepEqual(
        policies.map(({ policy }) => policy),
        ["headerModifiers"],
      );
    },
  },
  {
    what: "a stream of a model is translated from the format of the provider",
    manifests: (port) => `${documents(GATEWAY, route("ai", "ai"))}
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {custom: {model: m, formats: [{type: Completions}]}, host: 127.0.0.1, port: ${port}}}
`,
    request: {
      path: "/v1/messages",
      headers: JSON_BODY,
      body: JSON.stringify({ model: "x", max_tokens: 5, stream: true, messages: [{ role: "user", content: "hi" }] }),
    },
    check: (events) =>
      assert.deepEqual(messagesOf(events, "llmStreamingTranslation"), [
        {
          type: "llmStreamingTranslation",
          provider: "custom",
          inputFormat: "Messages",
          upstreamRouteType: "Completions",
          streamFormat: "Completions",
        },
      ]),
  },
  {
    what: "an endpoint was chosen by the session",
    async manifests(_port, context) {
      const replicas = await startReplicas(context, "a", "b");
      for (const replica of replicas) replica.answer = (_request, response) => void response.end();
      const source = `{source: 'request.headers["x-session"]'}`;
      return documents(GATEWAY, replicaService(replicas), servicePolicy(`{sessionAffinity: ${source}}`));
    },
    request: { headers: { "x-session": "one" } },
    check: (events) =>
      assert.deepEqual(
        messagesOf(events, "endpointSelection").map(({ cause }) => cause),
        ["affinity"],
      ),
  },
  {
    what: "every endpoint was evicted, and one was chosen all the same",
    async manifests(_port, context) {
      const replicas = await startReplicas(context, "a");
      for (const replica of replicas) replica.answer = (_request, response) => void response.writeHead(418).end();
      const health = `{unhealthyCondition: 'response.code == 418', eviction: {duration: 60s}}`;
      return documents(GATEWAY, replicaService(replicas), servicePolicy(`{health: ${health}}`));
    },
    before: 1,
    status: 418,
    check(events) {
      const [selection] = messagesOf(events, "endpointSelection");
      assert.equal(selection?.["cause"], "onlyRejected");
      const candidates = (selection?.["candidates"] ?? []) as readonly { readonly evicted: boolean }[];
      assert.deepEqual(
        candidates.map(({ evicted }) => evicted),
        [true],
      );
    },
  },
];

for (const { what, manifests, request = {}, before = 0, status = 200, check } of ROWS)
  test(what, async (t) => {
    const upstream = await startUpstream((asked, response) => {
      asked.resume();
      asked.on("end", () => {
        // What a provider streams; any other reader sees two bytes.
        const isModel = asked.url?.includes("completions") === true;
        if (isModel) response.setHeader("content-type", "text/event-stream");
        response.end(isModel ? "data: [DONE]\n\n" : "ok");
      });
    });
    t.after(() => upstream.close());
    const gateway = await startGateway(t, await manifests(upstream.port, contextOf(t)));
    assert.deepEqual(gateway.problems(), []);
    const { path = "/", headers = {}, body } = request;
    const ask = () =>
      call(`${gateway.url()}${path}`, { headers, ...(body === undefined ? {} : { method: "POST", body }) });
    for (let at = 0; at < before; at++) assert.equal((await ask()).status, status);
    const watch = await openWatch(gateway.proxy);
    assert.equal((await ask()).status, status);
    check(await watch.events(), upstream.port);
  });
