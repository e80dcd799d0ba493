/**
 * `make conformance`: the official Gateway API conformance suite, unmodified, against what users get: our images, deployed
 * by our controller on a real node that lives as long as the run. Writes the report. Exits with 1 when a test fails.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "../../../src/lib/version.ts";
import { startConformanceCluster } from "./cluster.ts";
import { sameResult } from "./report.ts";
import { runSuite, type Verdict } from "./suite.ts";

const ROOT = join(import.meta.dirname, "../../..");
const REPORT = join(ROOT, `docs/conformance/experimental-${VERSION}-default-report.yaml`);
const USAGE = `usage: make conformance, or node --import tsx test/conformance/gateway-api/main.ts [--run PATTERN] [--log FILE] [--keep]
  --run PATTERN   only the tests whose name matches; no report is written
  --log FILE      where the suite's whole output goes (default: dist/conformance.log)
  --keep          leave the cluster for a look around, until Ctrl-C
Needs root, and Debian's containerd, runc, containernetworking-plugins, iproute2, iptables and nftables.

Examples:
  make conformance
  make conformance RUN=HTTPRouteWeight
`;

const { values: options } = parseArgs({
  options: {
    run: { type: "string" },
    log: { type: "string", default: join(ROOT, "dist/conformance.log") },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (options.help) process.stdout.write(USAGE);
else if (!(await conform())) process.exitCode = 1;

async function conform(): Promise<boolean> {
  const began = performance.now();
  const say = (text: string): void => {
    const seconds = Math.round((performance.now() - began) / 1000);
    process.stdout.write(`${String(seconds).padStart(4)} s  ${text}\n`);
  };
  await mkdir(dirname(options.log), { recursive: true });
  const node = await startConformanceCluster(say);
  try {
    say(`running the suite, its output is in ${options.log}`);
    const report = options.run === undefined ? join(node.pit.directory, "report.yaml") : undefined;
    const counts: Record<Verdict["result"], number> = { PASS: 0, FAIL: 0, SKIP: 0 };
    const onVerdict = ({ test, result, seconds }: Verdict): void => {
      counts[result]++;
      if (result !== "SKIP") say(`${result} ${test} (${seconds} s)`);
    };
    const succeeded = await runSuite(node, { only: options.run, report, log: options.log, onVerdict });
    say(`${counts.PASS} passed, ${counts.FAIL} failed, ${counts.SKIP} of features that are not claimed`);
    if (report !== undefined && succeeded) await publish(report);
    if (options.keep) await looking(node.enter);
    return succeeded && counts.PASS > 0;
  } finally {
    await node.stop();
  }
}

/** A run that gives the same results again leaves the file alone: its date says since when they hold. */
async function publish(report: string): Promise<void> {
  const text = await readFile(report, "utf8");
  const old = await readFile(REPORT, "utf8").catch(() => "");
  if (sameResult(old, text)) return;
  await mkdir(dirname(REPORT), { recursive: true });
  await writeFile(REPORT, text);
  process.stdout.write(`the report has changed: ${REPORT}\n`);
}

function looking(enter: string): Promise<void> {
  process.stdout.write(`${enter} get pods -A\nCtrl-C ends it\n`);
  return new Promise((resolve) => process.once("SIGINT", resolve));
}
