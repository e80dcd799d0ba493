/** Parses metrics with Prometheus' own Go library, in a program of test/testbed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { programs } from "../../testbed/programs.ts";

export interface ParsedSeries {
  readonly name: string;
  readonly type: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Value of the series; for a histogram the number of observations. */
  readonly value: number;
}

/**
 * @param exposition metrics in the text format 0.0.4
 * @throws Error with the message of the parser
 */
export async function parsedByPrometheus(exposition: string): Promise<ParsedSeries[]> {
  const child = spawn(join(await programs("metrics"), "expositions"), { stdio: "pipe" });
  child.stdin.end(exposition);
  const [printed, said, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (code !== 0) throw new Error(`Prometheus cannot read it: ${said}`);
  const lines = printed.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as ParsedSeries);
}
