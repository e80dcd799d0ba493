/**
 * The inspector of MCP, a command, and the protocol's own example server, over each of its transports: what the inspector
 * prints of the server alone, it prints through the gateway, over both transports of clients.
 */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { documents, GATEWAY, route, startGateway } from "../support/gateway/gateway.ts";
import type { ProofContext } from "../support/proofs/prove.ts";

const PACKAGES = join(import.meta.dirname, "../../node_modules");
const INSPECTOR = join(PACKAGES, ".bin/mcp-inspector");
const EVERYTHING = join(PACKAGES, "@modelcontextprotocol/server-everything/dist/index.js");

/** A port that was free a moment ago: the server takes a number only. */
async function findPort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => void probe.listen(0, "127.0.0.1", resolve));
  // A TCP server that listens on a port has an address of this form.
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function startEverything(context: ProofContext, transport: string): Promise<number> {
  const port = await findPort();
  const server = spawn(process.execPath, [EVERYTHING, transport], { env: { ...process.env, PORT: String(port) } });
  context.after(() => void server.kill());
  let said = "";
  await new Promise<void>((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr])
      stream.on("data", (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes(String(port))) resolve();
      });
    server.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  return port;
}

/** Runs the inspector; returns what it prints, parsed. */
async function inspect(url: string, transport: string, ...method: readonly string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [INSPECTOR, "--cli", url, "--transport", transport, "--method", ...method],
    { maxBuffer: 16_777_216 },
  );
  return JSON.parse(stdout) as unknown;
}

const METHODS: readonly (readonly string[])[] = [
  ["tools/list"],
  ["tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"],
  ["tools/call", "--tool-name", "get-sum", "--tool-arg", "a=2", "b=3"],
  ["prompts/list"],
  ["prompts/get", "--prompt-name", "simple-prompt"],
];

for (const [transport, path, asked, protocol] of [
  ["streamableHttp", "/mcp", "http", "StreamableHTTP"],
  ["sse", "/sse", "sse", "SSE"],
] as const)
  test(`the inspector prints the same through the gateway (server of ${protocol})`, async (t) => {
    const port = await startEverything(t, transport);
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}, protocol: ${protocol}}}]}}
`;
    const gateway = await startGateway(t, documents(GATEWAY, backend, route("tools", "tools")));
    for (const method of METHODS) {
      const alone = await inspect(`http://127.0.0.1:${port}${path}`, asked, ...method);
      assert.deepEqual(await inspect(`${gateway.url()}/mcp`, "http", ...method), alone, method.join(" "));
      assert.deepEqual(await inspect(`${gateway.url()}/sse`, "sse", ...method), alone, method.join(" "));
    }
  });
