/** Runs the official conformance suite of MCP against a server alone and through the gateway; its tests call it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";

const SUITE = join(import.meta.dirname, "../../../node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** A scenario of the summary that the suite prints. */
const LINE = /^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm;

interface Outcome {
  readonly failed: number;
  readonly output: string;
}

/** Runs the suite; it fails where the server does, so that its exit code says nothing. */
async function runSuite(url: string, version: string): Promise<Map<string, Outcome>> {
  const parameters = [SUITE, "server", "--url", url, "--suite", "all", "--spec-version", version];
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, parameters, { maxBuffer: 1 << 26 }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  const rows = [...output.matchAll(LINE)];
  return new Map(rows.map(([, name = "", , failed]) => [name, { failed: Number(failed), output }]));
}

/** @param atLeast number of scenarios that the server passes alone, so that a broken server proves nothing */
export async function assertNothingLost(
  context: ProofContext,
  version: string,
  port: number,
  atLeast: number,
): Promise<void> {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("tools", "tools")));
  const alone = await runSuite(`http://127.0.0.1:${port}/mcp`, version);
  const through = await runSuite(`${gateway.url()}/mcp`, version);
  const passed = [...alone].filter(([, { failed }]) => failed === 0).map(([name]) => name);
  assert.ok(passed.length >= atLeast, `passed alone: ${passed.join(" ")}`);
  const lost = [...alone].filter(([name, { failed }]) => (through.get(name)?.failed ?? Infinity) > failed);
  assert.equal(lost.map(([name]) => name).join(" "), "", [...through.values()][0]?.output);
}
