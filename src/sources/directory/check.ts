/** One file → its objects, each normalised and validated, with every fault at its place. Pure, so the result can be kept. */
import { type KubeObject, type ObjectId, objectId } from "../../api/object.ts";
import { isUnknownField } from "../../admission/messages.ts";
import type { Violation } from "../../admission/violation.ts";
import type { SourceProblem } from "../source.ts";
import { type ApplyDefaults, groupKindOf, normalise } from "./normalise.ts";
import type { Excerpt } from "./excerpt.ts";
import { type Mark, type ParsedObject, parseManifest } from "./parse.ts";
import type { Place } from "./places.ts";
import type { SourceFile } from "./read.ts";

export type Validate = (object: unknown) => readonly Violation[];

export interface Checks {
  readonly validate: Validate;
  readonly applyDefaults: ApplyDefaults;
}

/** A fault with what a reader needs to see it. */
export interface FileProblem extends SourceProblem {
  /** "FieldValueInvalid" and its siblings, "Unreadable" or "Duplicate". */
  readonly reason: string;
  /** The line of the fault; undefined where it might show a secret. */
  readonly excerpt: Excerpt | undefined;
  /** "gwproxy.dev/GwPolicy"; "" when the object cannot be read. */
  readonly groupKind: string;
}

export interface CheckedObject extends Place {
  readonly file: string;
  readonly id: ObjectId;
  readonly object: KubeObject;
  /** Why it is refused; undefined when it is accepted. */
  readonly refusal: string | undefined;
  /** As it is written, without what an API server would add. */
  readonly written: Readonly<Record<string, unknown>>;
  readonly locate: (path: string) => Place;
  readonly mark: (path: string, about: "value" | "name") => Mark;
}

export interface CheckedFile {
  readonly path: string;
  readonly objects: readonly CheckedObject[];
  /** Objects in documents that cannot be read as a whole. */
  readonly fragments: readonly CheckedObject[];
  readonly problems: readonly FileProblem[];
  /** Some document could not be read. */
  readonly broken: boolean;
}

export function checkFile({ path, text }: SourceFile, checks: Checks): CheckedFile {
  const parsed = parseManifest(text);
  const problems: FileProblem[] = parsed.faults.map((fault) => ({ ...blank(path), reason: "Unreadable", ...fault }));
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
): { object?: CheckedObject; problems: FileProblem[] } {
  const object = normalise(found.value, checks.applyDefaults);
  if (isFaults(object)) {
    const title = titleOf(found.value);
    const problems = object.map(({ path, message }) => ({
      ...blank(file),
      ...found.mark(path, "value"),
      groupKind: kindOf(found.value),
      object: title,
      path,
      message,
    }));
    return { problems };
  }
  const violations = checks.validate(object);
  const title = titleOf(object);
  const problems = violations.map((violation) => {
    const { path, severity, reason, message, suggestion } = violation;
    const mark = found.mark(path, isUnknownField(violation) ? "name" : "value");
    return { file, ...mark, groupKind: kindOf(object), object: title, path, severity, reason, message, suggestion };
  });
  const errors = violations.filter(({ severity }) => severity === "error");
  const refusal =
    errors.length === 0
      ? undefined
      : errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  return { object: describe(file, found, object, refusal), problems };
}

function describe(file: string, found: ParsedObject, object: KubeObject, refusal: string | undefined): CheckedObject {
  const { value: written, locate, mark } = found;
  return { file, ...locate(""), id: objectId(object), object, refusal, written, locate, mark };
}

function kindOf({ apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown }): string {
  return typeof apiVersion === "string" && typeof kind === "string" ? groupKindOf(apiVersion, kind) : "";
}

function blank(file: string): FileProblem {
  const reason = "FieldValueInvalid";
  const nothing = { object: "", groupKind: "", path: "", message: "", suggestion: "", excerpt: undefined };
  return { file, line: 1, column: 1, severity: "error", reason, ...nothing };
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
