/** The reporter of file-runner.ts: tells its parent what failed and what each file cost. */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";

export interface FileReport {
  readonly file: string;
  readonly tests: number;
  readonly ms: number;
  /** Of this process and of those that it has waited for. */
  readonly cpuMs: number;
}

export type RunnerMessage =
  | { readonly type: "ready" }
  /** The file is done. */
  | { readonly type: "report"; readonly report: FileReport }
  | { readonly type: "failed" | "skipped"; readonly text: string };

const MS_PER_TICK = 10;

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
      send({ type: "failed", text });
      yield `✖ ${text}\n${inspect(data.details.error.cause ?? data.details.error)}\n`;
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

/** A suite fails with its tests, which are reported themselves. */
function failedBelow(error: Error): boolean {
  return "failureType" in error && error.failureType === "subtestsFailed";
}

function send(message: RunnerMessage): void {
  process.send?.(message);
}

/** User and system time of the process and its ended children: fields 14 to 17 of proc(5), which counts in ticks. */
function cpuMs(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK;
}
