/** Everything that is wrong with some manifests, as `gwproxy validate` prints it. Loads nothing. */
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../admission/validate.ts";
import { SourceError } from "../../lib/errors.ts";
import type { SourceProblem } from "../source.ts";
import { assemble } from "./assemble.ts";
import { checkFile } from "./check.ts";
import { readPaths } from "./read.ts";

/** @returns problems by file and place @throws SourceError when a path cannot be read: nothing is known then */
export async function validateFiles(paths: readonly string[]): Promise<SourceProblem[]> {
  const { files, faults } = await readPaths(paths);
  const [fault] = faults;
  if (fault !== undefined) throw new SourceError(`${fault.path}: ${fault.message}`);
  const checked = files.map((file) => checkFile(file, { validate, applyDefaults }));
  return [...assemble(checked, new Map()).problems];
}
