/**
 * Real services that policies call, each a process of its own on loopback: envoyproxy/ratelimit over Redis, and an
 * authorization and processing server on the public Go libraries. They end with the test, however it ends.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, freePorts } from "../support/fixtures/free-ports.ts";
import type { ProofContext } from "../support/proofs/prove.ts";
import { programs } from "./programs.ts";

type Cleaner = Pick<ProofContext, "after">;

/** Kills its program when our end of its input closes, which a crash of ours does too. */
const TIED = `exec 3<&0; "$@" </dev/null 3<&- & child=$!
  (while read -r _ <&3; do :; done; kill -KILL $child) >/dev/null 2>&1 &
  wait $child`;
const READY_WITHIN_MS = 30_000;

/** The Go server of external authorization and processing. @returns its port */
export async function startExtServer(context: Cleaner): Promise<number> {
  return portOf(await startPrinting(context, join(await programs("services"), "ext")));
}

export interface RateLimitService {
  readonly port: number;
  /** "redis-server" where the machine has it, else the stand-in of the testbed. */
  readonly store: string;
}

/** envoyproxy/ratelimit with a store of its own. @param configuration YAML of one domain, in the service's format */
export async function startRateLimitService(context: Cleaner, configuration: string): Promise<RateLimitService> {
  const bin = await programs("services");
  const { address, store } = await startRedis(context, bin);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-ratelimit-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "limits/config"), { recursive: true });
  writeFileSync(join(folder, "limits/config/config.yaml"), configuration);
  const [port = 0, health = 0, debug = 0] = await freePorts(3);
  const child = startTied(context, join(bin, "ratelimit"), [], {
    REDIS_SOCKET_TYPE: "tcp",
    REDIS_URL: address,
    USE_STATSD: "false",
    LOG_LEVEL: "error",
    RUNTIME_ROOT: folder,
    RUNTIME_SUBDIRECTORY: "limits",
    RUNTIME_WATCH_ROOT: "false",
    HOST: "127.0.0.1",
    GRPC_HOST: "127.0.0.1",
    DEBUG_HOST: "127.0.0.1",
    PORT: String(health),
    GRPC_PORT: String(port),
    DEBUG_PORT: String(debug),
  });
  await becomesReady(child, () => answers(`http://127.0.0.1:${health}/healthcheck`));
  return { port, store };
}

async function startRedis(context: Cleaner, bin: string): Promise<{ address: string; store: string }> {
  const port = await freePort();
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const found = startTied(context, "redis-server", settings, {});
  const accepted = new Promise<boolean>((resolve) => {
    found.once("exit", () => resolve(false));
    createInterface({ input: found.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      if (line.includes("Ready to accept connections")) resolve(true);
    });
  });
  if (await accepted) return { address: `127.0.0.1:${port}`, store: "redis-server" };
  return { address: await startPrinting(context, join(bin, "redis")), store: "the testbed's stand-in" };
}

/** Programs of ours print their address on the first line and end with their input. */
async function startPrinting(context: Cleaner, program: string): Promise<string> {
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] });
  context.after(() => void child.stdin.end());
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string]; // as the event is declared
  return line;
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

/** A program that ends with our end of its input; what it prints on stdout has to be read. */
export function startTied(
  context: Cleaner,
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): ChildProcess {
  const child = spawn("sh", ["-c", TIED, "tied", program, ...args], {
    stdio: ["pipe", "pipe", "ignore"],
    env: { PATH: process.env["PATH"], ...environment },
  });
  child.stdin.on("error", () => undefined);
  context.after(() => void child.stdin.end());
  return child;
}

async function becomesReady(child: ChildProcess, isReady: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  while (!(await isReady())) {
    if (performance.now() > until || child.exitCode !== null) throw new Error("the service did not become ready");
    await sleep(20);
  }
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(url, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on("error", () => resolve(false));
    asked.end();
  });
}
