/** Runs `gwproxy validate` in this process, on a file that the test writes. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type ValidateOptions, runValidate } from "../../../src/cli/validate/validate.ts";

export interface Validated {
  readonly code: number;
  readonly text: string;
  readonly file: string;
}

/** A row of `-o json`. */
export interface ProblemRow {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly object: string;
  readonly path: string;
  readonly severity: string;
  readonly message: string;
  readonly suggestion: string;
}

const DEFAULTS = {
  output: "text",
  strict: false,
  schemaOnly: true,
  enableInference: true,
  server: false,
  kubeconfig: undefined,
  context: undefined,
} as const;

/** @param options defaults to text output, without references */
export async function validateText(
  t: TestContext,
  manifest: string | Uint8Array,
  options: Partial<ValidateOptions> = {},
  { isColoured = false, name = "policy.yaml" }: { readonly isColoured?: boolean; readonly name?: string } = {},
): Promise<Validated> {
  const folder = await mkdtemp(join(tmpdir(), "gwproxy-validate-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, name);
  await writeFile(file, manifest);
  let text = "";
  const terminal = { isColoured, out: (part: string) => void (text += part), err: () => undefined };
  const code = await runValidate({ ...DEFAULTS, file: [file], ...options }, terminal);
  return { code, text, file };
}

export async function rowsOf(
  t: TestContext,
  manifest: string | Uint8Array,
  options: Partial<ValidateOptions> = {},
  name = "policy.yaml",
): Promise<readonly ProblemRow[]> {
  const { text } = await validateText(t, manifest, { ...options, output: "json" }, { name });
  return JSON.parse(text) as ProblemRow[];
}
