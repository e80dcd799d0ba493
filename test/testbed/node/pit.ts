/**
 * A place for a Kubernetes node: network, mounts, processes and control groups of its own (pit.sh). It vanishes with
 * everything in it when it is closed, and also when this process ends in any other way.
 */
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Pit {
  /** Lives as long as the pit. */
  readonly directory: string;
  /** Number of its first process, for nsenter. */
  readonly process: string;
  /** Starts a program that runs until the pit is closed. Its output goes to the file NAME.log of the directory. */
  start(name: string, argv: readonly string[]): void;
  /** Runs a program in there, on the files and with the environment of this process. */
  spawn(argv: readonly string[], options?: SpawnOptions): ChildProcess;
  /** Runs one to its end. @returns what it printed. @throws with its messages when it fails. */
  run(argv: readonly string[], stdin?: string): Promise<string>;
  close(): Promise<void>;
}

export async function openPit(): Promise<Pit> {
  const directory = await mkdtemp(join(tmpdir(), "gwproxy-node-"));
  const shell = spawn("bash", [join(import.meta.dirname, "pit.sh"), directory], {
    stdio: ["pipe", "pipe", "inherit"],
    // A signal of the terminal ends us, and that ends the pit in order.
    detached: true,
  });
  const ended = once(shell, "exit");
  // A write after its end has nobody left to tell; what is asked of it later fails with its own message.
  shell.stdin.on("error", () => undefined);
  const ready = once(createInterface({ input: shell.stdout }), "line").then(() => true);
  if (!(await Promise.race([ready, ended.then(() => false)]))) throw new Error("no place for a node; see above");
  const target = await firstProcess(directory);

  const enter = (argv: readonly string[], options: SpawnOptions = {}): ChildProcess =>
    spawn("nsenter", ["--target", target, "--net", "--mount", "--pid", "--cgroup", "--", ...argv], options);
  return {
    directory,
    process: target,
    start(name, argv) {
      const log = join(directory, `${name}.log`);
      shell.stdin.write(`exec ${argv.map(quote).join(" ")} >${quote(log)} 2>&1\n`);
    },
    spawn: enter,
    async run(argv, stdin) {
      const child = enter(argv, { stdio: ["pipe", "pipe", "pipe"] });
      let printed = "";
      let messages = "";
      child.stdout?.setEncoding("utf8").on("data", (text: string) => (printed += text));
      child.stderr?.setEncoding("utf8").on("data", (text: string) => (messages += text));
      child.stdin?.on("error", () => undefined).end(stdin ?? "");
      const [code] = (await once(child, "close")) as [number | null]; // as the event is declared
      if (code !== 0) throw new Error(`${argv.slice(0, 4).join(" ")} … ended with ${code}:\n${messages}${printed}`);
      return printed;
    },
    async close() {
      shell.stdin.end();
      await ended;
    },
  };
}

/** The first process in there, as the machine outside counts. */
async function firstProcess(directory: string): Promise<string> {
  const outer = (await readFile(join(directory, "process"), "utf8")).trim();
  return (await readFile(`/proc/${outer}/task/${outer}/children`, "utf8")).trim();
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
