/** Starts a separate gwproxy process as a user does, for tests across process boundaries. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { ProofContext } from "../proofs/prove.ts";

const BIN = join(import.meta.dirname, "../../../bin/gwproxy.mjs");

export interface GwproxyProcess {
  readonly pid: number;
  /** Standard output; pausing it simulates a stalled reader. */
  readonly stdout: Readable;
  /** Returns the lines printed so far, those of stdout and stderr in order of arrival. */
  output(): string;
  /**
   * Resolves when stdout or stderr contains the text; rejects when the process ends before.
   * @param from length of the output that is ignored
   */
  printed(text: string | RegExp, from?: number): Promise<void>;
  readonly exited: Promise<number | null>;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export function startGwproxy(
  context: Pick<ProofContext, "after">,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  bin: string = BIN,
): GwproxyProcess {
  const child = spawn(process.execPath, [bin, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  const waiting = new Set<() => void>();
  // Collect only whole lines: a chunk of one stream may end anywhere, and the next chunk may come from the other
  // stream.
  for (const stream of [child.stdout, child.stderr]) {
    let unfinished = "";
    const collect = (chunk: string): void => {
      const end = chunk.lastIndexOf("\n") + 1;
      if (end > 0) text += unfinished + chunk.slice(0, end);
      unfinished = end > 0 ? chunk.slice(end) : unfinished + chunk;
      for (const look of waiting) look();
    };
    stream.setEncoding("utf8").on("data", collect);
    stream.once("end", () => {
      if (unfinished !== "") collect("\n");
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const kill = async (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
    child.kill(signal);
    await exited;
  };
  context.after(() => kill("SIGKILL"));
  return {
    pid: child.pid ?? 0,
    stdout: child.stdout,
    output: () => text,
    exited,
    kill,
    printed(wanted, from = 0) {
      const found = (): boolean =>
        typeof wanted === "string" ? text.includes(wanted, from) : wanted.test(text.slice(from));
      return new Promise((resolve, reject) => {
        const look = (): void => {
          if (!found()) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
        void exited.then((code) =>
          reject(new Error(`gwproxy ${args[0]} ended with ${code} before it printed ${wanted}:\n${text}`)),
        );
      });
    },
  };
}

/**
 * Repeats a check until it holds, for states that another process reaches in its own time. The last failure is thrown.
 */
export async function eventually<T>(check: () => Promise<T>, timeoutMs = 60_000): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
