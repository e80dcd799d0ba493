/** Everything that is wrong with some manifests, as `gwproxy validate` prints it. Loads nothing. */
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../admission/validate.ts";
import { SourceError } from "../../lib/errors.ts";
import { Assembly, keepHidden } from "./assemble.ts";
import { type CheckedObject, type FileProblem, checkFile } from "./check.ts";
import { readPaths } from "./read.ts";

export interface ValidatedFiles {
  /** By file and place. */
  readonly problems: readonly FileProblem[];
  /** Every object that could be read, with its faults or without. */
  readonly objects: readonly CheckedObject[];
}

/** @throws SourceError when a path cannot be read: nothing is known then */
export async function validateFiles(paths: readonly string[]): Promise<ValidatedFiles> {
  const { files, faults } = await readPaths(paths);
  const [fault] = faults;
  if (fault !== undefined) throw new SourceError(`${fault.path}: ${fault.message}`);
  const checked = files.map((file) => checkFile(file, { validate, applyDefaults, reportsForeignKinds: true }));
  const assembly = new Assembly();
  for (const file of checked) assembly.put(file.path, keepHidden(file, undefined));
  assembly.take();
  return { problems: assembly.problems(), objects: checked.flatMap(({ objects }) => objects) };
}
