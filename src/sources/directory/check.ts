/** One file → its objects, each normalised and validated, with every fault at its place. Pure, so the result can be kept. */
import { type KubeObject, type ObjectId, objectId } from "../../api/object.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { isUnknownField } from "../../admission/messages.ts";
import type { Violation } from "../../admission/violation.ts";
import type { SourceProblem } from "../source.ts";
import { type ApplyDefaults, groupKindOf, normalise } from "./normalise.ts";
import type { Excerpt } from "./excerpt.ts";
import { describeForeignKind, type ForeignKind } from "./foreign-kind.ts";
import { envelopeStep, nextStep, syntaxStep } from "./next-step.ts";
import { type Identity, isMeantAsPolicy, readIdentity } from "./identity.ts";
import { type Mark, type MarkFault, type ParsedObject, parseManifestInSteps } from "./parse.ts";
import type { SourceLocation } from "./source-locations.ts";
import type { SourceFile } from "./read.ts";

type Validate = (object: unknown) => readonly Violation[];

export interface Checks {
  readonly validate: Validate;
  readonly applyDefaults: ApplyDefaults;
  /** Objects of kinds that the gateway does not read are worth a warning. Default: false. */
  readonly reportsForeignKinds?: boolean;
}

/** A fault with what a reader needs to see it. */
export interface FileProblem extends SourceProblem {
  /** The object that is not taken in because of the fault, as far as it can be read; undefined when the fault costs none. */
  readonly lost: Identity | undefined;
  /** "FieldValueInvalid" and its siblings, "Unreadable" or "Duplicate". */
  readonly reason: string;
  /** The line of the fault; undefined where it might show a secret. */
  readonly excerpt: Excerpt | undefined;
  /** "gwproxy.dev/GwPolicy"; "" when the object cannot be read. */
  readonly groupKind: string;
}

export interface CheckedObject extends SourceLocation {
  readonly file: string;
  readonly id: ObjectId;
  readonly object: KubeObject;
  /** Why it is refused; undefined when it is accepted. */
  readonly refusal: string | undefined;
  /** As it is written, without what an API server would add. */
  readonly written: Readonly<Record<string, unknown>>;
  readonly locate: (path: string) => SourceLocation;
  readonly mark: MarkFault;
  /** Its name cannot be read; the one that it has stands for its place. */
  readonly isNameless?: boolean;
}

export interface CheckedFile {
  readonly path: string;
  readonly objects: readonly CheckedObject[];
  /** Objects in documents that cannot be read as a whole. */
  readonly fragments: readonly CheckedObject[];
  readonly problems: readonly FileProblem[];
  /** What documents stand for whose object is not known for certain: each may be an object that the file held before. */
  readonly unidentified: readonly Identity[];
}

/** Nothing is known of it. */
const ANY: Identity = {};

/** Problems that are told of one file. Looking for the place of each takes longer than finding it. */
const MAX_PROBLEMS = 1_000;

/** Yields between pieces of work, so that a file of thousands of objects can be left. */
export function* checkFile({ path, text }: SourceFile, checks: Checks): Generator<undefined, CheckedFile> {
  const parsed = yield* parseManifestInSteps(text);
  const problems: FileProblem[] = parsed.faults.map((fault) => ({
    ...blank(path),
    reason: "Unreadable",
    lost: ANY,
    ...fault,
    suggestion: syntaxStep(fault.message, text.split("\n", fault.line)[fault.line - 1] ?? ""),
  }));
  const objects: CheckedObject[] = [];
  const fragments: CheckedObject[] = [];
  // A document that cannot be read may swallow those that follow it, so it may stand for each of them.
  const unidentified: Identity[] = parsed.faults.length > 0 ? [ANY] : [];
  let leftOut = 0;
  for (const found of parsed.objects) {
    yield;
    const checked = checkObject(path, found, checks, MAX_PROBLEMS - 1 - problems.length);
    problems.push(...checked.problems);
    leftOut += checked.leftOut ?? 0;
    if (checked.object !== undefined) objects.push(checked.object);
    if (checked.unidentified === undefined) continue;
    unidentified.push(checked.unidentified);
    fragments.push(...fragmentOf(path, found));
  }
  for (const fragment of parsed.fragments) {
    yield;
    fragments.push(...fragmentOf(path, fragment));
  }
  if (leftOut > 0) problems.push(moreProblems(path, leftOut));
  return { path, objects, fragments, problems, unidentified };
}

/** What a document that cannot be taken in seems to hold: an object that can be named, or a policy without a name. */
function fragmentOf(path: string, found: ParsedObject): CheckedObject[] {
  const { value } = found;
  const { name, namespace } = readIdentity(value);
  if (isMeantAsPolicy(value)) {
    const { line, column } = found.locate("");
    const metadata = { name: name ?? `${path}:${line}:${column}`, namespace: namespace ?? "default" };
    const object = { ...value, apiVersion: `${GWPROXY_GROUP}/v1alpha1`, kind: "GwPolicy", metadata };
    return [{ ...describe(path, found, object, "the document cannot be read"), isNameless: name === undefined }];
  }
  const object = normalise(value, (_, normalised) => normalised);
  return isFaults(object) ? [] : [describe(path, found, object, "the document cannot be read")];
}

interface ObjectCheck {
  readonly object?: CheckedObject;
  readonly problems: FileProblem[];
  /** Problems beyond those that may be told. */
  readonly leftOut?: number;
  readonly unidentified?: Identity;
}

/** @param room how many problems may still be told */
function checkObject(file: string, found: ParsedObject, checks: Checks, room: number): ObjectCheck {
  const foreign = describeForeignKind(found.value);
  if (foreign !== undefined) {
    const check = foreignObject(file, found, foreign, checks);
    return room > 0 ? check : { ...check, problems: [], leftOut: check.problems.length };
  }
  const object = normalise(found.value, checks.applyDefaults);
  if (isFaults(object)) {
    const title = titleOf(found.value);
    const lost = readIdentity(found.value);
    const problems = object.slice(0, Math.max(0, room)).map((fault) => {
      const [message = ""] = fault.message.split("; ");
      const mark = found.mark(fault.path, "value");
      const suggestion = templateStep(mark) ?? envelopeStep(fault, found.value);
      const about = { groupKind: kindOf(found.value), object: title, path: fault.path };
      return { ...blank(file), lost, ...mark, ...about, message, suggestion };
    });
    return { problems, leftOut: object.length - problems.length, unidentified: lost };
  }
  const violations = checks.validate(object);
  const title = titleOf(object);
  const problems = violations.slice(0, Math.max(0, room)).map((violation) => {
    const { path, severity, reason, message } = violation;
    const mark = found.mark(path, isUnknownField(violation) ? "name" : "value", violation.offset);
    const lost = severity === "error" ? objectId(object) : undefined;
    const groupKind = kindOf(object);
    const suggestion = templateStep(mark) ?? nextStep(violation, groupKind, object);
    return {
      file,
      ...mark,
      groupKind,
      object: title,
      path,
      severity,
      reason,
      message,
      suggestion,
      lost,
    };
  });
  const errors = violations.filter(({ severity }) => severity === "error");
  const refusal =
    errors.length === 0
      ? undefined
      : errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  return { object: describe(file, found, object, refusal), problems, leftOut: violations.length - problems.length };
}

function moreProblems(file: string, count: number): FileProblem {
  const message = `Too many: ${count} more problem${count === 1 ? " is" : "s are"} left out`;
  // Where errors are among them, those that are told are errors as well or the objects are refused all the same.
  return {
    ...blank(file),
    reason: "FieldValueTooMany",
    message,
    suggestion: "mend those that are listed first",
  };
}

/** A value that only looks like YAML because its template has not been rendered. */
function templateStep({ excerpt }: Mark): string | undefined {
  return excerpt?.text.includes("{{") === true ? syntaxStep("", excerpt.text) : undefined;
}

/** An object that the gateway does not read. One that was meant as another kind may stand for an object that served. */
function foreignObject(
  file: string,
  found: ParsedObject,
  { severity, path, message, suggestion, isMisspelt }: ForeignKind,
  { reportsForeignKinds = false }: Checks,
): ObjectCheck {
  const { value } = found;
  const lost = isMisspelt ? readIdentity(value) : undefined;
  const object = normalise(value, (_, normalised) => normalised);
  const title = titleOf(isFaults(object) ? value : object);
  const about = { groupKind: kindOf(value), object: title, path, reason: "FieldValueNotSupported" };
  const problem = { file, ...found.mark(path, "value"), ...about, severity, message, suggestion, lost };
  return {
    problems: isMisspelt || reportsForeignKinds ? [problem] : [],
    ...(isFaults(object) ? {} : { object: describe(file, found, object, undefined) }),
    ...(lost === undefined ? {} : { unidentified: lost }),
  };
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
  const nothing = {
    object: "",
    groupKind: "",
    path: "",
    message: "",
    suggestion: "",
    excerpt: undefined,
    lost: undefined,
  };
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
