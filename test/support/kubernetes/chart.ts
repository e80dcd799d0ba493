/** Renders the charts with Helm itself, as `helm template` prints them. The tests of the chart and of its rights use it. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../../src/api/object.ts";
import { programs } from "../../testbed/programs.ts";

const run = promisify(execFile);

/** Folder of the charts. */
export const CHARTS: string = join(import.meta.dirname, "../../../chart");

/** An object of the chart; the tests know what its kind has. */
export interface ChartObject extends KubeObject {
  readonly [member: string]: unknown;
}

/** @returns what Helm printed. @throws with its messages when it fails */
export async function helm(args: readonly string[], stdin = ""): Promise<string> {
  const running = run(join(await programs("helm"), "helm"), args, { cwd: CHARTS, maxBuffer: 1 << 26 });
  running.child.stdin?.end(stdin);
  return (await running).stdout;
}

/** Renders the chart gwproxy as the release "gwproxy" of the namespace "gwproxy-system". */
export async function renderChart(values: object = {}, more: readonly string[] = []): Promise<ChartObject[]> {
  const args = ["template", "gwproxy", "gwproxy", "--namespace", "gwproxy-system", "--values", "-", ...more];
  return parseObjects(await helm(args, JSON.stringify(values)));
}

/** Parses what Helm prints; templates without output leave empty documents. */
export function parseObjects(text: string): ChartObject[] {
  return parseAllDocuments(text)
    .map((document): unknown => document.toJS())
    .filter((object): object is ChartObject => object !== null);
}
