/** The Go program beside this file: the official test data as JSON, and cel-go as a second engine. */
import { execFile, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { ProtoValue } from "./values.ts";

const run = promisify(execFile);
const SOURCE = join(import.meta.dirname, "reference");
const CACHE = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "gwproxy-conformance");
const GO = { cwd: SOURCE, env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/local/go/bin` } };
const MAX_OUTPUT = 64 * 1024 * 1024;

/** Builds it, downloading the pinned modules if the cache lacks them. @returns the path of the program */
async function buildReference(): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  const program = join(CACHE, "celreference");
  await run("go", ["build", "-mod=readonly", "-o", program, "."], GO);
  return program;
}

/** The official test data, as the program prints them. */
export async function officialData(): Promise<unknown> {
  const program = await buildReference();
  const { stdout: folder } = await run("go", ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "cel.dev/expr"], GO);
  const data = join(folder.trim(), "tests", "simple", "testdata");
  const { stdout } = await run(program, ["cases", data], { maxBuffer: MAX_OUTPUT });
  return JSON.parse(stdout) as unknown;
}

interface Question {
  readonly expression: string;
  /** By name, in the JSON form of cel.expr.Value. */
  readonly variables?: Readonly<Record<string, ProtoValue>>;
}

/** Exactly one member: a value, or why there is none, before or while it ran. */
export interface Answer {
  readonly value?: ProtoValue;
  readonly refused?: string;
  readonly failed?: string;
}

export interface SecondEngine {
  /** Questions are answered in their order. */
  ask(question: Question): Promise<Answer>;
  stop(): void;
}

export async function startSecondEngine(): Promise<SecondEngine> {
  const child = spawn(await buildReference(), ["evaluate"], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting: PromiseWithResolvers<Answer>[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    // The program prints one Answer a line.
    waiting.shift()?.resolve(JSON.parse(line) as Answer);
  });
  child.once("close", (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`the second engine ended with ${code}`));
  });
  return {
    ask(question) {
      const answer = Promise.withResolvers<Answer>();
      waiting.push(answer);
      child.stdin.write(`${JSON.stringify(question)}\n`);
      return answer.promise;
    },
    stop() {
      child.stdin.end();
    },
  };
}
