/** The Go program beside this file: the official test data as JSON, and cel-go as a second engine. */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
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

/**
 * Builds the program, downloading the pinned modules if the cache lacks them. Two test files may do so at the same time,
 * so the name carries a digest of the sources, and a rename puts it in its place: nobody starts half of a program.
 * @returns the path of the program
 */
async function buildReference(): Promise<string> {
  const sources = readdirSync(SOURCE).sort();
  const digest = createHash("sha256");
  for (const name of sources) digest.update(name).update(readFileSync(join(SOURCE, name)));
  const program = join(CACHE, `celreference-${digest.digest("hex").slice(0, 16)}`);
  if (existsSync(program)) return program;
  mkdirSync(CACHE, { recursive: true });
  const unfinished = `${program}.${process.pid}`;
  await run("go", ["build", "-mod=readonly", "-o", unfinished, "."], GO);
  renameSync(unfinished, program);
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
  let ended: Error | undefined;
  const end = (reason: string): void => {
    ended ??= new Error(`the second engine ended: ${reason}`);
    for (const { reject } of waiting.splice(0)) reject(ended);
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    // The program prints one Answer a line.
    waiting.shift()?.resolve(JSON.parse(line) as Answer);
  });
  child.once("error", ({ message }) => end(message));
  child.once("close", (code, signal) => end(String(code ?? signal)));
  // A broken pipe shows that the program has ended; `close` says with what.
  child.stdin.on("error", () => undefined);
  return {
    ask(question) {
      if (ended !== undefined) return Promise.reject(ended);
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
