/**
 * `make conformance`: the official conformance suites of the Gateway API and of its inference extension, unmodified,
 * against what users get: our images, deployed by our controller on a real node that lives as long as the run. Writes the
 * reports. Exits with 1 when a test fails.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Node } from "../../testbed/node.ts";
import { startConformanceCluster } from "./cluster.ts";
import { sameResult } from "./report.ts";
import { runSuite, SUITES, type Suite, type Verdict } from "./suite.ts";

const ROOT = join(import.meta.dirname, "../../..");
const LOGS = join(ROOT, "dist");
const REPORTS = join(ROOT, "docs/conformance");
const USAGE = `usage: make conformance, or node --import tsx test/conformance/gateway-api/main.ts [--suite NAME] [--run PATTERN] [--keep]
  --suite NAME    only this suite, ${[...SUITES.keys()].join(" or ")}; default: all, at the same time on one node
  --run PATTERN   only the tests whose name matches; no report is written
  --keep          leave the cluster for a look around, until Ctrl-C
The whole output of each suite goes to dist/conformance-NAME.log.
Needs root, and Debian's containerd, runc, containernetworking-plugins, iproute2, iptables and nftables.

Examples:
  make conformance
  make conformance SUITE=gateway-api RUN=HTTPRouteWeight
`;

const { values: options } = parseArgs({
  options: {
    suite: { type: "string" },
    run: { type: "string" },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const began = performance.now();

if (options.help) process.stdout.write(USAGE);
else if (!(await conform())) process.exitCode = 1;

function say(text: string): void {
  const seconds = Math.round((performance.now() - began) / 1000);
  process.stdout.write(`${String(seconds).padStart(4)} s  ${text}\n`);
}

async function conform(): Promise<boolean> {
  const chosen = [...SUITES].filter(([name]) => options.suite === undefined || name === options.suite);
  if (chosen.length === 0)
    throw new Error(`unknown suite ${options.suite}; there are ${[...SUITES.keys()].join(", ")}`);
  await mkdir(LOGS, { recursive: true });
  const node = await startConformanceCluster(say);
  try {
    // Each has namespaces and Gateways of its own, and mostly waits.
    const outcomes = await Promise.all(chosen.map(([name, suite]) => runOne(node, name, suite)));
    if (options.keep) await looking(node.enter);
    return outcomes.every(({ succeeded }) => succeeded) && outcomes.some(({ passed }) => passed > 0);
  } finally {
    await node.stop();
  }
}

interface Outcome {
  readonly succeeded: boolean;
  readonly passed: number;
}

async function runOne(node: Node, name: string, suite: Suite): Promise<Outcome> {
  const log = join(LOGS, `conformance-${name}.log`);
  say(`running the suite ${name}, its output is in ${log}`);
  const report = options.run === undefined ? join(node.pit.directory, suite.report) : undefined;
  const counts: Record<Verdict["result"], number> = { PASS: 0, FAIL: 0, SKIP: 0 };
  const onVerdict = ({ test, result, seconds }: Verdict): void => {
    counts[result]++;
    if (result !== "SKIP" || !suite.maySkip) say(`${result} ${name} ${test} (${seconds} s)`);
  };
  const isClean = await runSuite(node, suite, { only: options.run, report, log, onVerdict });
  say(`${name}: ${counts.PASS} passed, ${counts.FAIL} failed, ${counts.SKIP} of features that are not claimed`);
  const succeeded = isClean && (suite.maySkip || counts.SKIP === 0);
  if (report !== undefined && succeeded) await publish(report, join(REPORTS, suite.report));
  return { succeeded, passed: counts.PASS };
}

/** A run that gives the same results again leaves the file alone: its date says since when they hold. */
async function publish(report: string, published: string): Promise<void> {
  const text = await readFile(report, "utf8");
  const old = await readFile(published, "utf8").catch(() => "");
  if (sameResult(old, text)) return;
  await mkdir(REPORTS, { recursive: true });
  await writeFile(published, text);
  process.stdout.write(`the report has changed: ${published}\n`);
}

function looking(enter: string): Promise<void> {
  process.stdout.write(`${enter} get pods -A\nCtrl-C ends it\n`);
  return new Promise((resolve) => process.once("SIGINT", resolve));
}
