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
  /** Starts a program that runs until it is killed or the pit is closed. Its output is added to NAME.log of the directory. */
  start(name: string, argv: readonly string[]): void;
  /** Does the same for one that is started again, a second later, whenever it ends: what systemd does on nodes. */
  keep(name: string, argv: readonly string[]): void;
  /** Kills a program that was started, as a crash does. Resolves when it is gone; what it started itself lives on. */
  kill(name: string): Promise<void>;
  /** Starts a program that was killed with the same command line. */
  startAgain(name: string): void;
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
  const run = async (argv: readonly string[], stdin?: string): Promise<string> => {
    const child = enter(argv, { stdio: ["pipe", "pipe", "pipe"] });
    let printed = "";
    let messages = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (printed += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (messages += text));
    child.stdin?.on("error", () => undefined).end(stdin ?? "");
    const [code] = (await once(child, "close")) as [number | null]; // as the event is declared
    if (code !== 0) throw new Error(`${argv.slice(0, 4).join(" ")} … ended with ${code}:\n${messages}${printed}`);
    return printed;
  };

  const commands = new Map<string, string>();
  const launch = (name: string, command: string): void => {
    const [log, number] = ["log", "pid"].map((end) => quote(join(directory, `${name}.${end}`)));
    shell.stdin.write(`echo "$BASHPID" >${number}; exec ${command} >>${log} 2>&1\n`);
  };
  const keep = (name: string, argv: readonly string[]): void => {
    const [log, number] = ["log", "pid"].map((end) => quote(join(directory, `${name}.${end}`)));
    const once = `${argv.map(quote).join(" ")} >>${log} 2>&1 & echo "$!" >${number}; wait "$!"`;
    shell.stdin.write(`while :; do ${once} || true; sleep 1; done 2>/dev/null\n`);
  };
  return {
    directory,
    process: target,
    start(name, argv) {
      const command = argv.map(quote).join(" ");
      commands.set(name, command);
      launch(name, command);
    },
    keep,
    async kill(name) {
      const number = (await readFile(join(directory, `${name}.pid`), "utf8")).trim();
      await run(["sh", "-c", `kill -KILL ${number}; while kill -0 ${number} 2>/dev/null; do sleep 0.1; done`]);
    },
    startAgain(name) {
      const command = commands.get(name);
      if (command === undefined) throw new Error(`${name} was never started`);
      launch(name, command);
    },
    spawn: enter,
    run,
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
