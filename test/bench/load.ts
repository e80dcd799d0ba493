/** Builds and runs the two Go programs of the benchmarks: the load generator and the mock upstream. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { bodyFile } from "./bodies.ts";
import { CACHE } from "./install.ts";
import type { Peer, Target } from "./peers.ts";
import type { Row } from "./rows.ts";

const run = promisify(execFile);
const HERE = import.meta.dirname;

export interface Tools {
  readonly loadgen: string;
  readonly mock: string;
}

/** The members of the load generator's output that are read here. Times are in microseconds. */
export interface Load {
  readonly ok: number;
  readonly bad: number;
  readonly ioerr: number;
  readonly first_error?: string;
  readonly rps: number;
  readonly cpu_us_per_req?: number;
  readonly rss_mb?: number;
  readonly svc_us: { readonly p50: number; readonly p99: number };
  readonly ttfb_us: { readonly p50: number; readonly p99: number };
}

export async function buildTools(): Promise<Tools> {
  mkdirSync(CACHE, { recursive: true });
  const build = async (name: string): Promise<string> => {
    const output = join(CACHE, name);
    await run("go", ["build", "-o", output, "."], { cwd: join(HERE, name) });
    return output;
  };
  return { loadgen: await build("loadgen"), mock: await build("mock") };
}

export interface LoadOptions {
  readonly seconds: number;
  readonly warmSeconds: number;
  readonly connections: number;
  /** Requests per second on a fixed schedule; without it each connection sends its next request after a response. */
  readonly rate?: number;
  /** Root of the process tree whose CPU time and memory are counted. */
  readonly pid?: number;
}

/** The program that gets the load, and its addresses. */
export type Asked = Pick<Peer, "name" | "port" | "targets">;

export function load(loadgen: string, peer: Asked, row: Row, options: LoadOptions): Promise<Load> {
  return startLoad(loadgen, peer, row, options).result;
}

export interface RunningLoad {
  readonly result: Promise<Load>;
  /** Ends the load early; `result` then holds the figures so far. */
  end(): void;
}

export function startLoad(loadgen: string, peer: Asked, row: Row, options: LoadOptions): RunningLoad {
  const target: Target | undefined = peer.targets[row.name];
  if (target === undefined) throw new TypeError(`${peer.name} has no address for ${row.name}`);
  const headers = Object.entries(target.headers ?? {}).map(([name, value]) => `-H=${name}: ${value}`);
  const args = [
    `-url=http://127.0.0.1:${peer.port}${target.path}`,
    `-method=${row.method}`,
    `-c=${options.connections}`,
    `-d=${options.seconds}s`,
    `-warm=${options.warmSeconds}s`,
    ...(options.rate === undefined ? [] : [`-rate=${options.rate}`]),
    ...(row.mcp === undefined
      ? []
      : ["-mcp", row.mcp === "tools/list" ? "-mcp-list" : `-tool=${target.tool ?? row.mcp}`]),
    ...(row.body === undefined ? [] : [`-body=@${bodyFile(row.body)}`]),
    ...(row.expect === undefined ? [] : [`-expect=${row.expect}`]),
    ...(options.pid === undefined ? [] : [`-pid=${options.pid}`]),
    ...headers,
  ];
  const running = run(loadgen, args);
  return {
    result: running.then(({ stdout }) => JSON.parse(stdout) as Load), // printed by our own program
    end: () => void running.child.kill("SIGTERM"),
  };
}
