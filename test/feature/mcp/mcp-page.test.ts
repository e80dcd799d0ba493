/** The examples of docs/mcp.md and the one in examples/mcp are served as they stand, by servers on loopback. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import { startToolServer } from "../../../examples/mcp/tool-server.ts";
import { TOOLS } from "../../../examples/mcp/tools.ts";
import { connectMcp } from "../../support/clients/mcp.ts";
import { documents, startGateway } from "../../support/gateway/gateway.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";

interface Manifest {
  readonly kind: string;
  readonly spec: { readonly mcp?: { readonly targets: { static?: { host: string; port: number } }[] } };
}

const ROOT = join(import.meta.dirname, "../../..");
const PAGE = readFileSync(join(ROOT, "docs/mcp.md"), "utf8");
const EXAMPLES = [...PAGE.matchAll(/```yaml\n((?:.*\n)*?)```/g)].map(([, yaml = ""]) => yaml);

function read(text = ""): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest); // documents of the page are such objects
}

function print(manifests: readonly Manifest[]): string[] {
  return manifests.map((manifest) => stringify(manifest));
}

async function startTools(context: ProofContext): Promise<number[]> {
  const servers = await Promise.all(TOOLS.map((tool) => startToolServer(0, tool)));
  context.after(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });
  return servers.map((server) => (server.address() as AddressInfo).port); // TCP servers have such addresses
}

const SEVERAL: readonly (readonly [about: string, text: () => string | undefined])[] = [
  ["the page", () => EXAMPLES[0]],
  ["examples/mcp", () => readFileSync(join(ROOT, "examples/mcp/gateway.yaml"), "utf8")],
];

for (const [about, textOf] of SEVERAL)
  prove([], `the official client sees the servers of ${about} as one`, async (context) => {
    const ports = await startTools(context);
    const manifests = read(textOf());
    const targets = manifests.flatMap(({ spec }) => spec.mcp?.targets ?? []);
    for (const [index, target] of targets.entries()) target.static = { host: "127.0.0.1", port: ports[index] ?? 0 };
    const gateway = await startGateway(context, documents(...print(manifests)));
    const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["clock_now", "dice_roll"],
    );
    const rolled = await client.callTool({ name: "dice_roll" });
    assert.match(JSON.stringify(rolled.content), /^\[{"type":"text","text":"[1-6]"}\]$/);
  });

prove([], "the official client uses the Service that the page selects", async (context) => {
  const [, port] = await startTools(context);
  const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: dice-1, labels: {kubernetes.io/service-name: dice}}
addressType: IPv4
ports: [{name: mcp, port: ${port}}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
  const rest = read(EXAMPLES[0]).filter(({ kind }) => kind !== "GwBackend");
  const gateway = await startGateway(context, documents(...print([...rest, ...read(EXAMPLES[1])]), slice));
  const { client } = await connectMcp(context, `${gateway.url()}/mcp`);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["dice_roll"],
  );
});
