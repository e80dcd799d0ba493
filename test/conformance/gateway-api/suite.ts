/** The official suite as a process inside the node's network, and what it says of each test as it goes along. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { VERSION } from "../../../src/lib/version.ts";
import type { Node } from "../../testbed/node.ts";
import { programs } from "../../testbed/programs.ts";

export interface Verdict {
  readonly test: string;
  readonly result: "PASS" | "FAIL" | "SKIP";
  readonly seconds: number;
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

/** The features are those that the GatewayClass claims. @returns whether the suite as a whole succeeded */
export async function runSuite(node: Node, options: SuiteOptions): Promise<boolean> {
  const { only, report, log } = options;
  const argv = [
    join(await programs("conformance"), "suite"),
    // The only form that tells of a test as soon as it has ended.
    "-test.v=test2json",
    "-test.timeout=90m",
    `-test.run=^TestConformance$${only === undefined ? "" : `/(${only})`}`,
    "--gateway-class=gwproxy",
    `--conformance-profiles=${PROFILES.join(",")}`,
    ...ADDRESSES,
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
