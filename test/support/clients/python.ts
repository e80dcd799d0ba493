/** Programs of test/support/python, which judge the gateway from another language. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { programs } from "../../testbed/programs.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface PythonProgram {
  /** Resolves with the next line that the program prints. */
  nextLine(): Promise<string>;
  /** Writes a line to the program. */
  write(line: string): void;
  /** Writes a line of JSON to the program, and resolves with the line of JSON that it answers. */
  ask(question: object): Promise<unknown>;
}

/** Starts a program; what it says on its standard error is shown when it ends on its own. */
export async function startPython(
  context: Pick<ProofContext, "after">,
  script: string,
  ...parameters: readonly string[]
): Promise<PythonProgram> {
  const python = join(await programs("python"), "python");
  const path = join(import.meta.dirname, "../python", script);
  const child = spawn(python, ["-W", "ignore", path, ...parameters]);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = `${said}${text}`.slice(-10_000)));
  const ended = once(child, "exit");
  context.after(async () => {
    child.kill();
    await ended;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`${script} ended: ${said}`);
    return value;
  };
  const write = (line: string): void => void child.stdin.write(`${line}\n`);
  return {
    nextLine,
    write,
    async ask(question) {
      write(JSON.stringify(question));
      return JSON.parse(await nextLine()) as unknown;
    },
  };
}
