/** One file → its objects, each normalised and validated, with every fault at its place. Pure, so the result can be kept. */
import { type KubeObject, type ObjectId, objectId } from "../../api/object.ts";
import type { Violation } from "../../admission/violation.ts";
import type { SourceProblem } from "../source.ts";
import { type ApplyDefaults, normalise } from "./normalise.ts";
import { type ParsedObject, type Place, parseManifest } from "./parse.ts";
import type { SourceFile } from "./read.ts";

export type Validate = (object: unknown) => readonly Violation[];

export interface Checks {
  readonly validate: Validate;
  readonly applyDefaults: ApplyDefaults;
}

export interface CheckedObject extends Place {
  readonly file: string;
  readonly id: ObjectId;
  readonly object: KubeObject;
  /** Why it is refused; undefined when it is accepted. */
  readonly refusal: string | undefined;
  readonly locate: (path: string) => Place;
}

export interface CheckedFile {
  readonly path: string;
  readonly objects: readonly CheckedObject[];
  /** Objects in documents that cannot be read as a whole. */
  readonly fragments: readonly CheckedObject[];
  readonly problems: readonly SourceProblem[];
  /** Some document could not be read. */
  readonly broken: boolean;
}

export function checkFile({ path, text }: SourceFile, checks: Checks): CheckedFile {
  const parsed = parseManifest(text);
  const problems: SourceProblem[] = parsed.faults.map(({ line, column, message }) => ({
    ...blank(path),
    line,
    column,
    message,
  }));
  const objects: CheckedObject[] = [];
  for (const found of parsed.objects) {
    const checked = checkObject(path, found, checks);
    problems.push(...checked.problems);
    if (checked.object !== undefined) objects.push(checked.object);
  }
  const fragments = parsed.fragments.flatMap((fragment) => {
    const object = normalise(fragment.value, (_, value) => value);
    return isFaults(object) ? [] : [describe(path, fragment, object, "the document cannot be read")];
  });
  return { path, objects, fragments, problems, broken: parsed.faults.length > 0 };
}

function checkObject(
  file: string,
  found: ParsedObject,
  checks: Checks,
): { object?: CheckedObject; problems: SourceProblem[] } {
  const object = normalise(found.value, checks.applyDefaults);
  if (isFaults(object)) {
    const title = titleOf(found.value);
    const problems = object.map(({ path, message }) => ({
      ...blank(file),
      ...found.locate(path),
      object: title,
      path,
      message,
    }));
    return { problems };
  }
  const violations = checks.validate(object);
  const title = titleOf(object);
  const problems = violations.map(({ path, severity, message, suggestion }) => {
    return { file, ...found.locate(path), object: title, path, severity, message, suggestion };
  });
  const errors = violations.filter(({ severity }) => severity === "error");
  const refusal =
    errors.length === 0
      ? undefined
      : errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  return { object: describe(file, found, object, refusal), problems };
}

function describe(file: string, found: ParsedObject, object: KubeObject, refusal: string | undefined): CheckedObject {
  return { file, ...found.locate(""), id: objectId(object), object, refusal, locate: found.locate };
}

function blank(file: string): SourceProblem {
  return { file, line: 1, column: 1, object: "", path: "", severity: "error", message: "", suggestion: "" };
}

function isFaults(value: ReturnType<typeof normalise>): value is Extract<typeof value, readonly unknown[]> {
  return Array.isArray(value);
}

/** "GwPolicy default/keys", as far as the parts are there. */
export function titleOf(value: Readonly<Record<string, unknown>> | KubeObject): string {
  const { kind, metadata } = value as { kind?: unknown; metadata?: { name?: unknown; namespace?: unknown } | null };
  if (typeof kind !== "string") return "";
  const name = [metadata?.namespace, metadata?.name].filter((part) => typeof part === "string").join("/");
  return name === "" ? kind : `${kind} ${name}`;
}
