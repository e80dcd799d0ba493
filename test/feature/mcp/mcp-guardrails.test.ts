/** `mcp.guardrails`: services that check and change requests and results of an MCP backend, through real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CheckError_Code as Code } from "../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import { askMcp } from "../../support/clients/mcp.ts";
import { staticBackend, gatewayPolicy } from "../../support/gateway/gateway.ts";
import { startMcpGateway } from "../../support/gateway/mcp.ts";
import { BLOCK_PLACES } from "../../support/proofs/block-places.ts";
import { contextOf, prove } from "../../support/proofs/prove.ts";
import { startMcpGuard } from "../../support/servers/mcp-guard.ts";

const bytesOf = (value: object): Uint8Array => Buffer.from(JSON.stringify(value));
const mutated = (value: object) => ({ result: { case: "mutated" as const, value: bytesOf(value) } });
const ECHO = { name: "echo", arguments: { text: "a" } };

/** @param remote members of `remote` in flow YAML @param methods in flow YAML */
const guard = (remote: string, methods = '{"tools/*": Full}'): string =>
  `guardrails: {processors: [{methods: ${methods}, remote: {${remote}}}]}`;

function textOf(result: unknown): string | undefined {
  return (result as { content?: { text: string }[] } | undefined)?.content?.[0]?.text;
}

for (const place of BLOCK_PLACES) {
  const field = (name: string): string => place.field(`mcp.guardrails.processors[].${name}`);
  const on = `(${place.kind})`;

  prove(
    [field("remote.url"), field("methods")],
    `a service changes params and results of a call ${on}`,
    async (context) => {
      const service = await startMcpGuard(context, {
        request: () => mutated({ name: "echo", arguments: { text: "changed" } }),
        result: () => mutated({ content: [{ type: "text", text: "masked" }] }),
      });
      const remote = `url: "http://127.0.0.1:${service.port}"`;
      const { url, server } = await startMcpGateway(context, place, guard(remote));
      assert.equal(textOf((await askMcp(url, "tools/call", ECHO)).result), "masked");
      const sent = server.calls.flatMap(({ messages }) => messages).find(({ method }) => method === "tools/call");
      assert.deepEqual((sent as { params?: unknown } | undefined)?.params, {
        name: "echo",
        arguments: { text: "changed" },
      });
      const [request] = service.requests;
      assert.deepEqual([request?.serviceNames, request?.method], [["one"], "tools/call"]);
      assert.deepEqual(JSON.parse(Buffer.from(request?.mcpRequest ?? []).toString()), ECHO);
      const [result] = service.results;
      assert.equal(textOf(JSON.parse(Buffer.from(result?.mcpResponse ?? []).toString())), "test: changed");
      await askMcp(url, "prompts/list");
      assert.equal(service.requests.length, 1, "a method without a pattern is not shown");
    },
  );

  prove(
    [field("remote.backendRef.group"), field("remote.backendRef.kind"), field("remote.backendRef.name")],
    `a service of the cluster rejects a call before a server gets it ${on}`,
    async (context) => {
      const value = { code: Code.PERMISSION_DENIED, reason: "not you", mcpError: bytesOf({ ticket: 7 }) };
      const service = await startMcpGuard(context, { request: () => ({ result: { case: "error", value } }) });
      const remote = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: checks}";
      const checks = staticBackend("checks", service.port);
      const { url, server } = await startMcpGateway(context, place, guard(remote), checks);
      const { status, error } = await askMcp(url, "tools/call", ECHO);
      assert.deepEqual([status, error], [200, { code: -32_001, message: "not you", data: { ticket: 7 } }]);
      assert.deepEqual(server.methods(), []);
    },
  );

  prove(field("remote.backendRef.namespace"), `the service may be in another namespace ${on}`, async (context) => {
    const service = await startMcpGuard(context);
    const remote = "backendRef: {group: gwproxy.dev, kind: GwBackend, name: checks, namespace: guards}";
    const checks = staticBackend("checks", service.port).replace("{name: checks}", "{name: checks, namespace: guards}");
    const { url } = await startMcpGateway(context, place, guard(remote), checks);
    assert.equal(textOf((await askMcp(url, "tools/call", ECHO)).result), "test: a");
    assert.equal(service.requests.length, 1);
  });

  prove(field("remote.backendRef.port"), `the service may be a Service port ${on}`, async (context) => {
    const service = await startMcpGuard(context);
    const objects = `
apiVersion: v1
kind: Service
metadata: {name: checks}
spec: {ports: [{name: grpc, port: 9000}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: checks-1, labels: {kubernetes.io/service-name: checks}}
addressType: IPv4
ports: [{name: grpc, port: ${service.port}}]
endpoints: [{addresses: [127.0.0.1]}]
`;
    const { url } = await startMcpGateway(context, place, guard("backendRef: {name: checks, port: 9000}"), objects);
    assert.equal(textOf((await askMcp(url, "tools/call", ECHO)).result), "test: a");
    assert.equal(service.requests.length, 1);
  });

  prove(
    field("remote.failureMode"),
    `calls pass a service that is gone when the block says so ${on}`,
    async (context) => {
      const { url } = await startMcpGateway(context, place, guard('url: "http://127.0.0.1:1", failureMode: FailOpen'));
      assert.equal(textOf((await askMcp(url, "tools/call", ECHO)).result), "test: a");
    },
  );

  prove(field("remote.failureMode"), `calls are rejected when a service is gone ${on}`, async (context) => {
    const block = guard('url: "http://127.0.0.1:1", failureMode: FailClosed');
    const { url, server } = await startMcpGateway(context, place, block);
    const { error } = await askMcp(url, "tools/call", ECHO);
    assert.deepEqual(error, { code: -32_603, message: "a guardrail failed" });
    assert.deepEqual(server.methods(), []);
  });

  prove(
    [field("remote.metadata"), field("remote.allowedRequestHeaders[]"), field("remote.disallowedRequestHeaders[]")],
    `a service is shown values of expressions and chosen headers ${on}`,
    async (context) => {
      const service = await startMcpGuard(context);
      const chosen = "allowedRequestHeaders: [X-Team, X-Secret], disallowedRequestHeaders: [x-secret]";
      const values = "{tool: mcp.tool.name, team: 'request.headers[\"x-team\"]', absent: jwt.sub}";
      const remote = `url: "http://127.0.0.1:${service.port}", metadata: ${values}, ${chosen}`;
      const { url } = await startMcpGateway(context, place, guard(remote));
      await askMcp(url, "tools/call", ECHO, { "x-team": "blue", "x-secret": "s", "x-other": "o" });
      const [request] = service.requests;
      assert.deepEqual(request?.metadataContext, { tool: "echo", team: "blue" });
      const headers = request.headers.map(({ key, value }) => [key, Buffer.from(value).toString()]);
      assert.deepEqual(headers, [["x-team", "blue"]]);
    },
  );
}

test("headers and metadata of a service reach the server and expressions", async (t) => {
  const context = contextOf(t);
  const header = { key: "X-Checked", value: Buffer.from("yes") };
  const service = await startMcpGuard(context, {
    request: () => ({
      result: { case: "pass", value: {} },
      headerMutation: { set: [header], remove: ["X-Team"] },
      metadata: { level: 3 },
    }),
  });
  const [inBackend] = BLOCK_PLACES;
  assert.ok(inBackend);
  const rules = "authorization: {policy: {matchExpressions: ['mcpGuardrails.level == 3']}}";
  const block = `${rules}, ${guard(`url: "http://127.0.0.1:${service.port}"`)}`;
  const { url, server } = await startMcpGateway(context, inBackend, block);
  const answer = await askMcp(url, "tools/call", ECHO, { "x-team": "blue" });
  assert.equal(textOf(answer.result), "test: a");
  const sent = server.calls.find(({ messages }) => messages.some(({ method }) => method === "tools/call"));
  assert.equal(sent?.headers["x-checked"], "yes");
  assert.equal(sent.headers["x-team"], undefined);
  // Without the service's metadata the rule does not hold.
  assert.equal((await askMcp(url, "prompts/get", { name: "greet", arguments: { who: "x" } })).error?.code, -32_602);
});

test("the most specific level that has guardrails supplies them", async (t) => {
  const context = contextOf(t);
  const [general, specific] = [await startMcpGuard(context), await startMcpGuard(context)];
  const above = gatewayPolicy("above", `  backend: {mcp: {${guard(`url: "http://127.0.0.1:${general.port}"`)}}}`);
  const [inBackend] = BLOCK_PLACES;
  assert.ok(inBackend);
  const block = guard(`url: "http://127.0.0.1:${specific.port}"`);
  const { url } = await startMcpGateway(context, inBackend, block, above);
  await askMcp(url, "tools/call", ECHO);
  assert.deepEqual([general.requests.length, specific.requests.length], [0, 1]);
});

for (const [failureMode, expected] of [
  ["FailClosed", [-32_603, undefined]],
  ["FailOpen", [undefined, "test: a"]],
] as const)
  test(`a service that does not answer in time has failed (${failureMode})`, async (t) => {
    const [inBackend] = BLOCK_PLACES;
    assert.ok(inBackend);
    const context = contextOf(t);
    const service = await startMcpGuard(context, { isSilent: true });
    const checks = `${staticBackend("checks", service.port)}  policies: {http: {requestTimeout: 50ms}}\n`;
    const remote = `backendRef: {group: gwproxy.dev, kind: GwBackend, name: checks}, failureMode: ${failureMode}`;
    const block = guard(remote, '{"tools/*": Request}');
    const { url } = await startMcpGateway(context, inBackend, block, checks);
    // On a busy machine the time is over before the service is connected.
    while (service.requests.length === 0) {
      const { error, result } = await askMcp(url, "tools/call", ECHO);
      assert.deepEqual([error?.code, textOf(result)], expected);
    }
  });
