/** The test reporter of file-runner.ts: reports failures and the cost of each file to the parent process. */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";

export interface FileReport {
  readonly file: string;
  readonly tests: number;
  readonly ms: number;
  /** CPU time of this process and of the child processes that it has waited for. */
  readonly cpuMs: number;
}

export type RunnerMessage =
  | { readonly type: "ready" }
  /** Sent when a file is finished. */
  | { readonly type: "report"; readonly report: FileReport }
  | { readonly type: "failed" | "skipped"; readonly text: string };

const MS_PER_TICK = 10;

/** Lines of an error in the summary, which is all that is left of a run where its output is cut. */
const LINES_OF_A_FAILURE = 12;
const CHARACTERS_OF_A_LINE = 200;

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const names: string[] = [];
  let tests = 0;
  let startedMs = performance.now();
  let cpuBeforeMs = cpuMs();
  for await (const { type, data } of source) {
    if (type === "test:start") {
      names.length = data.nesting;
      names.push(data.name);
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    const [file = "", ...path] = [...names.slice(0, data.nesting), data.name];
    const text = [relative(process.cwd(), file), ...path].join(" › ");
    if (data.details.type !== "suite") tests += 1;
    if (data.skip !== undefined || data.todo !== undefined) send({ type: "skipped", text });
    if (type === "test:fail" && !failedBelow(data.details.error)) {
      const error = data.details.error.cause ?? data.details.error;
      send({ type: "failed", text: `${text}\n${beginning(error)}` });
      yield `✖ ${text}\n${inspect(error)}\n`;
    }
    if (data.nesting > 0) continue;
    send({
      type: "report",
      report: {
        file: relative(process.cwd(), file),
        tests,
        ms: performance.now() - startedMs,
        cpuMs: cpuMs() - cpuBeforeMs,
      },
    });
    tests = 0;
    startedMs = performance.now();
    cpuBeforeMs = cpuMs();
  }
}

/** Whether a suite failed only because of its tests, which are reported themselves. */
function failedBelow(error: Error): boolean {
  return "failureType" in error && error.failureType === "subtestsFailed";
}

/** Returns the first lines of an error's message, indented. */
function beginning(error: unknown): string {
  const lines = (error instanceof Error ? error.message : inspect(error)).split("\n");
  const shown = lines.filter((line) => line.trim() !== "").slice(0, LINES_OF_A_FAILURE);
  return shown.map((line) => `      ${line.slice(0, CHARACTERS_OF_A_LINE)}`).join("\n");
}

function send(message: RunnerMessage): void {
  process.send?.(message);
}

/**
 * Returns user and system time of the process and its ended children, from fields 14 to 17 of /proc/self/stat
 * (proc(5)), which count in ticks.
 */
function cpuMs(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK;
}
