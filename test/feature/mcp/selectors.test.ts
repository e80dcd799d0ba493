/** MCP servers that are found by the labels of Services, through the official client: they come and go with the cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { connectMcp } from "../../support/clients/mcp.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import { prove } from "../../support/proofs/prove.ts";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

const FIELD = "GwBackend spec.mcp.targets[].selector";

/** @param metadata flow YAML of further members of its metadata */
function service(name: string, port: number, metadata: string, namespace = "default"): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}, ${metadata}}
spec: {ports: [{name: mcp, port: 80, appProtocol: gwproxy.dev/mcp}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: ${namespace}, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: mcp, port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}

/** @param selector flow YAML */
function backend(selector: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec:
  mcp:
    prefixMode: Always
    targets: [{name: found, selector: ${selector}}]
`;
}

async function namesOf(client: Client): Promise<string[]> {
  const { tools } = await client.listTools();
  return [...new Set(tools.map(({ name }) => name.split("_", 1)[0] ?? ""))].sort();
}

prove(
  [`${FIELD}.services.matchLabels`],
  "Services with the labels are targets, by name or annotation; one that comes or goes changes one backend",
  async (context) => {
    const notes = await startMcpServer(context, { name: "notes" });
    const files = await startMcpServer(context, { name: "files" });
    const base = [GATEWAY, backend("{services: {matchLabels: {kind: mcp}}}"), route("tools", "tools")];
    const first = service("notes", notes.port, "labels: {kind: mcp}");
    const annotations = 'annotations: {gwproxy.dev/mcp-target-name: documents, gwproxy.dev/mcp-path: "/mcp?tenant=1"}';
    const second = service("files", files.port, `labels: {kind: mcp}, ${annotations}`);
    const other = service("other", files.port, "labels: {kind: other}");
    const gateway = await startGateway(context, documents(...base, first, other));
    const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
    assert.deepEqual(await namesOf(client), ["notes-mcp"]);
    await gateway.change(documents(...base, first, second, other));
    const sent = gateway.updates.at(-1)?.set.map(({ type, key }) => `${type} ${key}`) ?? [];
    assert.deepEqual(sent.sort(), [
      "Backend backend/default/tools",
      "Backend service/default/files:80",
      "Endpoints service/default/files:80",
    ]);
    // A live session adopts the list.
    assert.deepEqual(await namesOf(client), ["documents", "notes-mcp"]);
    const called = await client.callTool({ name: "documents_echo", arguments: { text: "hi" } });
    assert.deepEqual(called.content, [{ type: "text", text: "files: hi" }]);
    assert.ok(files.calls.every(({ path }) => path === "/mcp?tenant=1"));
    await gateway.change(documents(...base, second, other));
    assert.deepEqual(await namesOf(client), ["documents"]);
  },
);

/** Selectors of the namespace `far`, and of Services that are not old. */
const FAR = [
  'matchLabels: {tools: "true"}',
  'matchExpressions: [{key: tools, operator: In, values: ["true"]}]',
] as const;

for (const far of FAR) {
  const isList = far.startsWith("matchExpressions");
  const expressions = ["key", "operator", "values[]"].map((member) => `matchExpressions[].${member}`);
  prove(
    [
      ...(isList ? expressions : ["matchLabels"]).map((member) => `${FIELD}.namespaces.${member}`),
      ...expressions.map((member) => `${FIELD}.services.${member}`),
    ],
    `Services of all namespaces that match are targets, and no grant is needed (${far})`,
    async (context) => {
      const server = await startMcpServer(context);
      const namespaces = ["near", "far"].map(
        (name) => `
apiVersion: v1
kind: Namespace
metadata: {name: ${name}, labels: {tools: "${name === "far"}"}}
`,
      );
      const services = "{matchExpressions: [{key: kind, operator: NotIn, values: [old]}]}";
      const gateway = await startGateway(
        context,
        documents(
          GATEWAY,
          backend(`{namespaces: {${far}}, services: ${services}}`),
          route("tools", "tools"),
          ...namespaces,
          service("one", server.port, "labels: {kind: new}", "far"),
          service("two", server.port, "labels: {kind: old}", "far"),
          service("three", server.port, "labels: {kind: new}", "near"),
        ),
      );
      const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
      assert.deepEqual(await namesOf(client), ["one-mcp"]);
    },
  );
}

test("a selector that finds too many ports is reported", async (t) => {
  const ports = Array.from(
    { length: 129 },
    (_each, at) => `{name: p${at}, port: ${at + 1}, appProtocol: gwproxy.dev/mcp}`,
  );
  const many = `
apiVersion: v1
kind: Service
metadata: {name: many, labels: {kind: mcp}}
spec: {ports: [${ports.join(", ")}]}
`;
  const selector = backend("{services: {matchLabels: {kind: mcp}}}");
  const gateway = await startGateway(t, documents(GATEWAY, selector, route("tools", "tools"), many));
  const [problem] = gateway.translator.diagnostics().filter(({ path }) => path.includes("selector"));
  assert.match(problem?.message ?? "", /finds 129 ports of Services; at most 128 may be targets/);
});
