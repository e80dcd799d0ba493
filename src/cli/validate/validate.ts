/**
 * Runs `gwproxy validate`: collects the problems that the directory source, the translator and, on request, an API
 * server find, and prints them in one of three forms.
 */
import type { Terminal } from "../../lib/terminal.ts";
import { explain } from "../../admission/explain.ts";
import { FatalError, messageOf } from "../../lib/errors.ts";
import { byPlace } from "../../sources/directory/assemble.ts";
import { validateFiles } from "../../sources/directory/validate-files.ts";
import { rowOf } from "../../runtime/report.ts";
import { sarifLog } from "./sarif.ts";
import { validateReferences } from "./references.ts";
import { problemText } from "./text.ts";
import { askServer, type JudgedProblem, mergeVerdicts } from "./server.ts";

export interface ValidateOptions {
  readonly file: readonly string[];
  readonly output: "text" | "json" | "sarif";
  readonly strict: boolean;
  /** Skips the check of references to other objects. */
  readonly schemaOnly: boolean;
  readonly server: boolean;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
}

/**
 * @returns the exit code
 * @throws FatalError with exit code 2 when files or server cannot be read
 */
export async function runValidate(options: ValidateOptions, terminal: Terminal): Promise<number> {
  const files = await validateFiles(options.file).catch((error: unknown) => {
    throw new FatalError(`cannot read the manifests: ${messageOf(error)}`, 2, error);
  });
  const { objects } = files;
  const own = options.schemaOnly ? files.problems : [...files.problems, ...validateReferences(files)].sort(byPlace);
  const verdicts = options.server ? await askServer(objects, options) : undefined;
  const problems: readonly JudgedProblem[] =
    verdicts === undefined
      ? own.map((problem) => ({ ...problem, saidBy: ["gwproxy"] }))
      : mergeVerdicts(own, objects, verdicts);
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  switch (options.output) {
    case "json":
      terminal.out(`${JSON.stringify(problems.map(rowFor(options.server)), null, 2)}\n`);
      break;
    case "sarif":
      terminal.out(`${JSON.stringify(sarifLog(problems), null, 2)}\n`);
      break;
    case "text":
      for (const problem of problems) {
        const notes = explain(problem.groupKind, problem.path);
        // A description of the schema is printed once, below the line.
        const suggestion = notes.includes(problem.suggestion) ? "" : problem.suggestion;
        const shown = options.server ? [...notes, speakers(problem)] : notes;
        terminal.out(problemText({ ...problem, suggestion }, shown, terminal));
      }
      if (verdicts !== undefined) {
        terminal.out(
          `${counted(objects.length, "object")} checked by gwproxy and by the API server ${verdicts.server}\n`,
        );
      }
      terminal.out(`${counted(errors, "error")}, ${counted(warnings, "warning")}\n`);
  }
  return errors > 0 || (options.strict && warnings > 0) ? 1 : 0;
}

function rowFor(withJudges: boolean): (problem: JudgedProblem) => object {
  return (problem) => (withJudges ? { ...rowOf(problem), saidBy: problem.saidBy } : rowOf(problem));
}

function speakers({ saidBy }: JudgedProblem): string {
  return `said by: ${saidBy.map((judge) => (judge === "server" ? "the API server" : judge)).join(" and ")}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
