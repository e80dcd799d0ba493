/**
 * Runs `gwproxy validate`: collects the diagnostics that the directory source, the translator and, on request, an API
 * server find, and prints them in one of three forms.
 */
import type { Terminal } from "../../lib/terminal.ts";
import { explain } from "../../admission/explain.ts";
import { FatalError, messageOf } from "../../lib/errors.ts";
import { byPlace } from "../../sources/directory/assemble.ts";
import { validateFiles } from "../../sources/directory/validate-files.ts";
import { rowOf } from "../../runtime/report.ts";
import { sarifLog } from "./sarif.ts";
import { validateCatalogs } from "./catalogs.ts";
import { validateReferences } from "./references.ts";
import { diagnosticText } from "./text.ts";
import { askServer, type AttributedDiagnostic, mergeDiagnostics } from "./server.ts";

export interface ValidateOptions {
  readonly file: readonly string[];
  readonly output: "text" | "json" | "sarif";
  readonly strict: boolean;
  /** Skips the check of references to other objects. */
  readonly schemaOnly: boolean;
  /** InferencePools are served. */
  readonly enableInference: boolean;
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
  const own = options.schemaOnly
    ? files.diagnostics
    : [...files.diagnostics, ...validateReferences(files, options), ...validateCatalogs(files)].sort(byPlace);
  const verdicts = options.server ? await askServer(objects, options) : undefined;
  const diagnostics: readonly AttributedDiagnostic[] =
    verdicts === undefined
      ? own.map((diagnostic) => ({ ...diagnostic, saidBy: ["gwproxy"] }))
      : mergeDiagnostics(own, objects, verdicts);
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  const warnings = diagnostics.length - errors;
  switch (options.output) {
    case "json":
      terminal.out(`${JSON.stringify(diagnostics.map(rowFor(options.server)), null, 2)}\n`);
      break;
    case "sarif":
      terminal.out(`${JSON.stringify(sarifLog(diagnostics), null, 2)}\n`);
      break;
    case "text":
      for (const diagnostic of diagnostics) {
        const notes = explain(diagnostic.groupKind, diagnostic.path);
        // A description of the schema is printed once, below the line.
        const suggestion = notes.includes(diagnostic.suggestion) ? "" : diagnostic.suggestion;
        const shown = options.server ? [...notes, checkersText(diagnostic)] : notes;
        terminal.out(diagnosticText({ ...diagnostic, suggestion }, shown, terminal));
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

function rowFor(withCheckers: boolean): (diagnostic: AttributedDiagnostic) => object {
  return (diagnostic) => (withCheckers ? { ...rowOf(diagnostic), saidBy: diagnostic.saidBy } : rowOf(diagnostic));
}

function checkersText({ saidBy }: AttributedDiagnostic): string {
  return `said by: ${saidBy.map((checker) => (checker === "server" ? "the API server" : checker)).join(" and ")}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
