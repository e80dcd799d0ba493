/**
 * `make cel-conformance`: every official case with its verdict, and the counts by group. Exits with 1 when one fails.
 */
import { parseArgs } from "node:util";
import { officialCases } from "./cases.ts";
import { runCase } from "./runner.ts";

const USAGE = `usage: node --import tsx test/conformance/cel/main.ts [--failed]
  --failed   list only the cases that fail
`;

const { values: options } = parseArgs({
  options: { failed: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
});
if (options.help) process.stdout.write(USAGE);
else await list();

async function list(): Promise<void> {
  const summary: string[] = [];
  for (const [group, cases] of await officialCases()) {
    const counts = { value: [0, 0], error: [0, 0], type: [0, 0] };
    for (const given of cases) {
      const problem = runCase(given);
      const count = counts[given.expected.kind];
      count[1] = (count[1] ?? 0) + 1;
      if (problem === undefined) count[0] = (count[0] ?? 0) + 1;
      else process.exitCode = 1;
      if (problem !== undefined || !options.failed) {
        process.stdout.write(
          `${problem === undefined ? "pass" : "FAIL"} ${given.name}${problem === undefined ? "" : `: ${problem}`}\n`,
        );
      }
    }
    const { value, error, type } = counts;
    summary.push(`${group}: values ${value.join("/")}, errors ${error.join("/")}, types ${type.join("/")}`);
  }
  process.stdout.write(`${summary.join("\n")}\n`);
}
