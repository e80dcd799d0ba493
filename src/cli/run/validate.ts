/** `gwproxy validate`: prints what the directory source finds wrong. */
import { FatalError, messageOf } from "../../lib/errors.ts";
import { validateFiles } from "../../sources/directory/validate-files.ts";
import type { ValidateOptions } from "../commands/validate.ts";
import type { Terminal } from "../output.ts";
import { problemLine } from "./report.ts";

/** @returns the exit code */
export async function runValidate(options: ValidateOptions, terminal: Terminal): Promise<number> {
  const problems = await validateFiles(options.file).catch((error: unknown) => {
    throw new FatalError(`cannot read the manifests: ${messageOf(error)}`, 2, error);
  });
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  if (options.output === "json") {
    const rows = problems.map(({ file, line, object, path, severity, message, suggestion }) => ({
      file,
      line,
      object,
      path,
      severity,
      message,
      suggestion,
    }));
    terminal.out(`${JSON.stringify(rows, null, 2)}\n`);
  } else {
    for (const problem of problems) terminal.out(`${problemLine(problem)}\n`);
    terminal.out(
      `${errors} ${errors === 1 ? "error" : "errors"}, ${warnings} ${warnings === 1 ? "warning" : "warnings"}\n`,
    );
  }
  return errors > 0 || (options.strict && warnings > 0) ? 1 : 0;
}
