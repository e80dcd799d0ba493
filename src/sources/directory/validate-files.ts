/** Checks manifests without loading them, for `gwproxy validate`. */
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../admission/validate.ts";
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { SourceError } from "../../lib/errors.ts";
import { runAtOnce } from "../../lib/slices.ts";
import { Assembly, keepHidden } from "./assemble.ts";
import { type CheckedFile, type CheckedObject, type FileDiagnostic, checkFile } from "./check.ts";
import { readPaths } from "./read.ts";

export interface ValidatedFiles {
  /** Sorted by file and position. */
  readonly diagnostics: readonly FileDiagnostic[];
  /** All readable objects, valid or not. */
  readonly objects: readonly CheckedObject[];
  /** Objects that can be put in force; of two with the same name, the first. */
  readonly accepted: readonly KubeObject[];
  /** Ids of objects that unreadable documents stand for, as far as they can be read. */
  readonly hidden: readonly ObjectId[];
}

/** @throws SourceError when a path cannot be read, because the result would be incomplete */
export async function validateFiles(paths: readonly string[]): Promise<ValidatedFiles> {
  const { files, errors } = await readPaths(paths);
  const [error] = errors;
  if (error !== undefined) throw new SourceError(`${error.path}: ${error.message}`);
  if (files.length === 0)
    throw new SourceError(`no manifests in ${paths.join(", ")}: files that end in .yaml, .yml or .json are read`);
  const checked = files.map((file) =>
    runAtOnce(checkFile(file, { validate, applyDefaults, reportsForeignKinds: true })),
  );
  const assembly = new Assembly();
  for (const file of checked) assembly.put(file.path, keepHidden(file, undefined));
  const accepted = assembly.take().flatMap((event) => (event.type === "set" ? [event.object] : []));
  return {
    diagnostics: assembly.diagnostics(),
    objects: checked.flatMap(({ objects }) => objects),
    accepted,
    hidden: checked.flatMap(hiddenIn),
  };
}

function hiddenIn({ unidentified, fragments }: CheckedFile): ObjectId[] {
  const named = unidentified.flatMap(({ group, kind, namespace = "default", name }) =>
    group === undefined || kind === undefined || name === undefined ? [] : [{ group, kind, namespace, name }],
  );
  return [...named, ...fragments.map(({ id }) => id)];
}
