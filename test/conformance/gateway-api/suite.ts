/** The official suites as processes inside the node's network, and what they say of each test as they go along. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { VERSION } from "../../../src/lib/version.ts";
import type { Node } from "../../testbed/node.ts";
import { programs, type Part } from "../../testbed/programs.ts";

export interface Verdict {
  readonly test: string;
  readonly result: "PASS" | "FAIL" | "SKIP";
  readonly seconds: number;
}

export interface Suite {
  /** What holds its program. */
  readonly part: Part;
  readonly flags: readonly string[];
  /** Name of its report in docs/conformance. */
  readonly report: string;
  /** A test of a feature that our GatewayClass does not claim is skipped. */
  readonly maySkip: boolean;
}

export interface SuiteOptions {
  /** Regular expression over the names of the tests; undefined runs all. */
  readonly only: string | undefined;
  /** Where the report goes; undefined writes none. */
  readonly report: string | undefined;
  /** Where its whole output goes. */
  readonly log: string;
  onVerdict(verdict: Verdict): void;
}

const PROFILES = ["GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TLS", "GATEWAY-TCP"];
/** Ours balancer gives the one; no balancer gives the other, because a Service can ask for an IP address alone. */
const ADDRESSES = ["--usable-address=10.89.0.10", "--unusable-address=unusable.example"];
const IMPLEMENTATION = [
  "--organization=gwproxy",
  "--project=gwproxy",
  "--url=https://github.com/gwproxy/gwproxy",
  `--version=v${VERSION}`,
  "--contact=https://github.com/gwproxy/gwproxy/issues",
];

export const SUITES: ReadonlyMap<string, Suite> = new Map([
  [
    "gateway-api",
    {
      part: "conformance",
      // The features are those that the GatewayClass claims.
      flags: [`--conformance-profiles=${PROFILES.join(",")}`, ...ADDRESSES],
      report: `experimental-${VERSION}-default-report.yaml`,
      maySkip: true,
    },
  ],
  [
    "inference",
    {
      part: "inference",
      // The suite is built with an older Gateway API than the node has, and would refuse to run beside a newer one.
      flags: ["--allow-crds-mismatch"],
      report: `inference-${VERSION}-default-gateway-report.yaml`,
      maySkip: false,
    },
  ],
]);

/** @returns whether the suite as a whole succeeded */
export async function runSuite(node: Node, { part, flags }: Suite, options: SuiteOptions): Promise<boolean> {
  const { only, report, log } = options;
  const argv = [
    join(await programs(part), "suite"),
    // The only form that tells of a test as soon as it has ended.
    "-test.v=test2json",
    "-test.timeout=90m",
    `-test.run=^TestConformance$${only === undefined ? "" : `/(${only})`}`,
    "--gateway-class=gwproxy",
    ...flags,
    ...IMPLEMENTATION,
    ...(report === undefined ? [] : [`--report-output=${report}`]),
  ];
  const child = node.pit.spawn(argv, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, KUBECONFIG: node.kubeconfig },
  });
  const output = createWriteStream(log);
  const ended = once(child, "close");
  child.stderr?.pipe(output, { end: false });
  if (child.stdout === null) throw new Error("the suite has no output"); // a pipe was asked for
  for await (const line of createInterface({ input: child.stdout })) {
    output.write(`${line}\n`);
    const verdict = verdictOf(line);
    if (verdict !== undefined) options.onVerdict(verdict);
  }
  const [code] = (await ended) as [number | null]; // as the event is declared
  output.end();
  return code === 0;
}

/** A test of the suite is the second level; what it consists of is deeper. Such lines begin with a sign of their own. */
function verdictOf(line: string): Verdict | undefined {
  const found = /^\W--- (PASS|FAIL|SKIP): TestConformance\/([^/ ]+) \(([\d.]+)s\)$/.exec(line);
  if (found === null) return undefined;
  const [, result, test = "", seconds] = found;
  return { test, result: result as Verdict["result"], seconds: Number(seconds) }; // one of the three by the expression
}
