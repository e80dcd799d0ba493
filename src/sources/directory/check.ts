/**
 * Checks one file: parses it, normalises and validates each object, and gives every diagnostic its position. The directory
 * source and `gwproxy validate` use it. It is a pure function of the text, so the directory source caches the result.
 */
import { type KubeObject, type ObjectId, objectId } from "../../api/object.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { isUnknownField } from "../../admission/messages.ts";
import type { Violation } from "../../admission/violation.ts";
import type { SourceDiagnostic } from "../source.ts";
import { type ApplyDefaults, groupKindOf, normalise } from "./normalise.ts";
import type { Excerpt } from "./excerpt.ts";
import { describeForeignKind, type ForeignKind } from "./foreign-kind.ts";
import { envelopeStep, nextStep, syntaxStep } from "./next-step.ts";
import { type Identity, isMeantAsPolicy, readIdentity } from "./identity.ts";
import { type Mark, type MakeMark, type ParsedObject, parseManifestInSteps } from "./parse.ts";
import type { SourceLocation } from "./source-locations.ts";
import type { SourceFile } from "./read.ts";

type Validate = (object: unknown) => readonly Violation[];

export interface Checks {
  readonly validate: Validate;
  readonly applyDefaults: ApplyDefaults;
  /** Reports objects of kinds that the gateway does not read as warnings. Default: false. */
  readonly reportsForeignKinds?: boolean;
}

/** A diagnostic with the details that the output of `gwproxy validate` needs. */
export interface FileDiagnostic extends SourceDiagnostic {
  /**
   * Identity of the object that is not loaded because of the diagnostic, as far as it can be read; undefined when the
   * diagnostic does not cost an object.
   */
  readonly lost: Identity | undefined;
  /** Reason as the API server names it ("FieldValueInvalid", …), or "Unreadable" or "Duplicate". */
  readonly reason: string;
  /** The source line; undefined when it might show a secret. */
  readonly excerpt: Excerpt | undefined;
  /** Group and kind such as "gwproxy.dev/GwPolicy"; "" when the object cannot be read. */
  readonly groupKind: string;
}

export interface CheckedObject extends SourceLocation {
  readonly file: string;
  readonly id: ObjectId;
  readonly object: KubeObject;
  /** Says why the object is refused; undefined when it is accepted. */
  readonly rejection: string | undefined;
  /** The object as it is written in the file, without the values that an API server would add. */
  readonly written: Readonly<Record<string, unknown>>;
  readonly locate: (path: string) => SourceLocation;
  readonly mark: MakeMark;
  /** True when the name cannot be read; `id.name` is then the position of the document. */
  readonly isNameless?: boolean;
}

export interface CheckedFile {
  readonly path: string;
  readonly objects: readonly CheckedObject[];
  /** Objects in documents that cannot be read as a whole. */
  readonly fragments: readonly CheckedObject[];
  readonly diagnostics: readonly FileDiagnostic[];
  /**
   * Documents whose object is not known for certain; each may be any object of matching identity that the file held
   * before.
   */
  readonly unidentified: readonly Identity[];
}

/** The identity of a document of which nothing can be read. */
const ANY: Identity = {};

/**
 * Limit of diagnostics that are reported per file: finding the position of a diagnostic takes longer than finding the
 * diagnostic.
 */
const MAX_DIAGNOSTICS = 1_000;

/**
 * Checks a file as a generator that yields between pieces of work, so that the caller can abandon a file of thousands
 * of objects.
 */
export function* checkFile({ path, text }: SourceFile, checks: Checks): Generator<undefined, CheckedFile> {
  const parsed = yield* parseManifestInSteps(text);
  const diagnostics: FileDiagnostic[] = parsed.errors.map((error) => ({
    ...blank(path),
    reason: "Unreadable",
    lost: ANY,
    ...error,
    suggestion: syntaxStep(error.message, text.split("\n", error.line)[error.line - 1] ?? ""),
  }));
  const objects: CheckedObject[] = [];
  const fragments: CheckedObject[] = [];
  // A document with a syntax error may swallow the documents after it, so it may stand for any of them.
  const unidentified: Identity[] = parsed.errors.length > 0 ? [ANY] : [];
  let leftOut = 0;
  for (const found of parsed.objects) {
    yield;
    const checked = checkObject(path, found, checks, MAX_DIAGNOSTICS - 1 - diagnostics.length);
    diagnostics.push(...checked.diagnostics);
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
  if (leftOut > 0) diagnostics.push(leftOutDiagnostic(path, leftOut));
  return { path, objects, fragments, diagnostics, unidentified };
}

/**
 * Returns the objects that an unreadable document seems to hold: an object with a name, or a policy even without one.
 */
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
  return isErrors(object) ? [] : [describe(path, found, object, "the document cannot be read")];
}

interface ObjectCheck {
  readonly object?: CheckedObject;
  readonly diagnostics: FileDiagnostic[];
  /** Number of diagnostics beyond the limit. */
  readonly leftOut?: number;
  readonly unidentified?: Identity;
}

/** @param room number of diagnostics that may still be reported for the file */
function checkObject(file: string, found: ParsedObject, checks: Checks, room: number): ObjectCheck {
  const foreign = describeForeignKind(found.value);
  if (foreign !== undefined) {
    const check = foreignObject(file, found, foreign, checks);
    return room > 0 ? check : { ...check, diagnostics: [], leftOut: check.diagnostics.length };
  }
  const object = normalise(found.value, checks.applyDefaults);
  if (isErrors(object)) {
    const title = titleOf(found.value);
    const lost = readIdentity(found.value);
    const diagnostics = object.slice(0, Math.max(0, room)).map((error) => {
      const [message = ""] = error.message.split("; ");
      const mark = found.mark(error.path, "value");
      const suggestion = templateStep(mark) ?? envelopeStep(error, found.value);
      const about = { groupKind: kindOf(found.value), object: title, path: error.path };
      return { ...blank(file), lost, ...mark, ...about, message, suggestion };
    });
    return { diagnostics, leftOut: object.length - diagnostics.length, unidentified: lost };
  }
  const violations = checks.validate(object);
  const title = titleOf(object);
  const diagnostics = violations.slice(0, Math.max(0, room)).map((violation) => {
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
  const rejection =
    errors.length === 0
      ? undefined
      : errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  return {
    object: describe(file, found, object, rejection),
    diagnostics,
    leftOut: violations.length - diagnostics.length,
  };
}

function leftOutDiagnostic(file: string, count: number): FileDiagnostic {
  const message = `Too many: ${count} more problem${count === 1 ? " is" : "s are"} left out`;
  // When errors are among the omitted diagnostics, the listed ones are errors too, or their objects are refused all the
  // same.
  return {
    ...blank(file),
    reason: "FieldValueTooMany",
    message,
    suggestion: "mend those that are listed first",
  };
}

/** Suggests to render a template first when the value contains template syntax, which only looks like YAML. */
function templateStep({ excerpt }: Mark): string | undefined {
  return excerpt?.text.includes("{{") === true ? syntaxStep("", excerpt.text) : undefined;
}

/**
 * Checks an object of a kind that the gateway does not read. When it was meant as another kind, it may stand for an
 * object that served before.
 */
function foreignObject(
  file: string,
  found: ParsedObject,
  { severity, path, message, suggestion, isMisspelt }: ForeignKind,
  { reportsForeignKinds = false }: Checks,
): ObjectCheck {
  const { value } = found;
  const lost = isMisspelt ? readIdentity(value) : undefined;
  const object = normalise(value, (_, normalised) => normalised);
  const title = titleOf(isErrors(object) ? value : object);
  const about = { groupKind: kindOf(value), object: title, path, reason: "FieldValueNotSupported" };
  const diagnostic = { file, ...found.mark(path, "value"), ...about, severity, message, suggestion, lost };
  return {
    diagnostics: isMisspelt || reportsForeignKinds ? [diagnostic] : [],
    ...(isErrors(object) ? {} : { object: describe(file, found, object, undefined) }),
    ...(lost === undefined ? {} : { unidentified: lost }),
  };
}

function describe(file: string, found: ParsedObject, object: KubeObject, rejection: string | undefined): CheckedObject {
  const { value: written, locate, mark } = found;
  return { file, ...locate(""), id: objectId(object), object, rejection, written, locate, mark };
}

function kindOf({ apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown }): string {
  return typeof apiVersion === "string" && typeof kind === "string" ? groupKindOf(apiVersion, kind) : "";
}

function blank(file: string): FileDiagnostic {
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

function isErrors(value: ReturnType<typeof normalise>): value is Extract<typeof value, readonly unknown[]> {
  return Array.isArray(value);
}

/** Returns a title such as "GwPolicy default/keys", as far as the parts are present. */
export function titleOf(value: Readonly<Record<string, unknown>> | KubeObject): string {
  const { kind, metadata } = value as { kind?: unknown; metadata?: { name?: unknown; namespace?: unknown } | null };
  if (typeof kind !== "string") return "";
  const name = [metadata?.namespace, metadata?.name].filter((part) => typeof part === "string").join("/");
  return name === "" ? kind : `${kind} ${name}`;
}
