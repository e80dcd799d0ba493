/** Starts the child processes of a run with a minimal environment, measures their memory, and ends them. */
import { spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Running {
  readonly pid: number;
  /** Milliseconds from the start to the first successful response. */
  readonly startMs: number;
  /** Returns the resident memory of the process tree in MiB. */
  residentMiB(): number;
  stop(): Promise<void>;
}

const STOP_GRACE_MS = 5_000;

/** Processes to kill when the run is interrupted; they would keep their ports. */
const alive = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

/**
 * Starts a program and waits until `probe` is answered with 200.
 * It gets only the environment variables that it needs, because the others may hold secrets.
 * @throws Error with the end of its output when it ends or does not respond in time
 */
export async function start(command: Command, probe: URL, limitMs: number): Promise<Running> {
  if ((await answer(probe)) !== undefined) throw new Error(`port ${probe.port} is taken by another program`);
  const began = performance.now();
  const child = spawn(command.file, command.args, {
    cwd: command.cwd,
    env: { PATH: process.env["PATH"], HOME: command.cwd ?? "/nonexistent", LANG: "C.UTF-8", ...command.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-2_000);
  });
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", (error) => {
      output += error.message;
      resolve();
    });
  });
  const over = new AbortController();
  void ended.then(() => over.abort());
  while (!over.signal.aborted && performance.now() - began < limitMs) {
    if ((await answer(probe)) === 200) return running(child, performance.now() - began, ended);
    await delay(5);
  }
  await stop(child, ended);
  throw new Error(`${command.file} did not serve ${probe.pathname}: ${output.trim()}`);
}

/** @returns the status; undefined without a response */
function answer(url: URL): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(undefined));
  });
}

function running(child: ChildProcess, startMs: number, ended: Promise<void>): Running {
  const { pid } = child;
  if (pid === undefined) throw new TypeError("a process that answers has an id");
  return { pid, startMs, residentMiB: () => residentMiB(pid), stop: () => stop(child, ended) };
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), STOP_GRACE_MS);
  await ended;
  clearTimeout(force);
}

function residentMiB(root: number): number {
  let kib = 0;
  for (const pid of tree(root)) {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(pid, "status"));
    kib += Number(match?.[1] ?? 0);
  }
  return kib / 1024;
}

function tree(root: number): number[] {
  const parents = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readProc(Number(entry), "stat");
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    parents.set(parent, [...(parents.get(parent) ?? []), Number(entry)]);
  }
  const all = [root];
  for (const pid of all) all.push(...(parents.get(pid) ?? []));
  return all;
}

/** Returns "" for a process that has just ended. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
