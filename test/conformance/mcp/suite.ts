/** Runs the official conformance suite of MCP against a server alone and through the gateway; its tests call it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";

const SUITE = join(import.meta.dirname, "../../../node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** What the suite writes of one check; a scenario has several, some under the same id. */
interface Check {
  readonly id: string;
  readonly name: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
}

/** Checks by scenario. */
type Report = ReadonlyMap<string, readonly Check[]>;

/** Runs the suite. Its exit code says no more than its report. */
async function runSuite(url: string, version: string): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
  try {
    const parameters = [SUITE, "server", "--url", url, "--suite", "all", "--spec-version", version, "-o", folder];
    await new Promise<void>((resolve) => {
      execFile(process.execPath, parameters, { maxBuffer: 1 << 26 }, () => resolve());
    });
    const report = new Map<string, readonly Check[]>();
    for (const scenario of await readdir(folder)) {
      // A folder has the name of its scenario and the time of the run.
      const name = scenario.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
      report.set(name, JSON.parse(await readFile(join(folder, scenario, "checks.json"), "utf8")) as Check[]);
    }
    return report;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Lists the checks that have one of these results, as one line each. */
function list(report: Report, ...results: readonly Check["status"][]): string[] {
  return [...report].flatMap(([scenario, checks]) =>
    checks.filter(({ status }) => results.includes(status)).map(({ id, name }) => `${scenario}: ${id} ${name}`),
  );
}

/** Takes the second list from the first, each line as often as it occurs. */
function subtract(lines: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return lines.filter((line) => {
    const at = left.indexOf(line);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

interface Expected {
  readonly version: string;
  /** Number of scenarios that the suite has for this version. */
  readonly scenarios: number;
  /** Checks that the gateway does not pass, because it does otherwise what the protocol leaves open. */
  readonly different?: readonly string[];
}

/** Compares check by check: what the server passes alone, it passes through the gateway. */
export async function assertNothingLost(
  context: ProofContext,
  port: number,
  { version, scenarios, different = [] }: Expected,
): Promise<void> {
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: tools}
spec: {mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: ${port}}}]}}
`;
  const gateway = await startGateway(context, documents(GATEWAY, backend, route("tools", "tools")));
  const alone = await runSuite(`http://127.0.0.1:${port}/mcp`, version);
  const imperfect = list(alone, "FAILURE", "WARNING", "SKIPPED");
  assert.deepEqual(imperfect, [], "the server itself does not offer all that the suite looks at");
  assert.equal(alone.size, scenarios, [...alone.keys()].join(" "));
  const through = await runSuite(`${gateway.url()}/mcp`, version);
  const lost = subtract(list(alone, "SUCCESS"), list(through, "SUCCESS"));
  assert.deepEqual(
    lost,
    different,
    JSON.stringify([...through.values()].flat().filter(({ status }) => status !== "SUCCESS")),
  );
  assert.deepEqual(list(through, "FAILURE"), []);
}
