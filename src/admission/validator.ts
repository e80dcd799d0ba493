/**
 * Validates one object and returns everything that is wrong with it, as a pure function. validate.ts creates the one
 * that runs. The checks run in the order of the API server: size, shape, then rules when the shape is right; then the
 * checks that no rule of a CRD can make (semantics.ts).
 */
import type { RuleNode } from "../../generated/rules.ts";
import { suggestion } from "../lib/suggest.ts";
import { boundsViolation } from "./checks/bounds.ts";
import { type SchemaError, violation, violationOf } from "./messages.ts";
import { memberOf } from "./paths.ts";
import { ruleViolations } from "./checks/rules.ts";
import { print } from "./print.ts";
import { MAX_SCHEMA_ERRORS, ViolationList } from "./violation-list.ts";
import type { Violation } from "./violation.ts";

/** The schemas of the kinds, by "group/Kind". */
export interface ApiSchema {
  /** Returns the served versions of the kind; undefined for an unknown kind. */
  versionsOf(groupKind: string): readonly string[] | undefined;
  kindsOf(group: string): readonly string[];
  shapeErrors(groupKind: string, object: unknown): readonly SchemaError[];
  rulesOf(groupKind: string): RuleNode | undefined;
  /** Yields lazily what no rule of a CRD can check; called for objects of the right shape. */
  semanticViolations(groupKind: string, object: unknown): Iterable<Violation>;
  knownFields(groupKind: string, error: SchemaError): readonly string[];
  isSecret(groupKind: string, path: string): boolean;
}

export type Validator = (object: unknown, old?: unknown) => Violation[];

/** After one of these the API server evaluates no rules, because values that the rules read may be missing. */
const BLOCKING: ReadonlySet<string> = new Set([
  "FieldValueRequired",
  "FieldValueTypeInvalid",
  "FieldValueNotSupported",
  "FieldValueTooLong",
  "FieldValueTooMany",
]);

const OWN_GROUP = "gwproxy.dev";
const GATEWAY_API = "gateway.networking.k8s.io";

/**
 * Returns a validator. A violation in one step that makes the next step meaningless ends the validation, as on the API
 * server.
 */
export function createValidator(schema: ApiSchema): Validator {
  return (object, old) => {
    const bounds = boundsViolation(object);
    if (bounds !== undefined) return [bounds];
    const envelope = envelopeViolations(object);
    if (envelope.length > 0) return envelope;
    // The cast holds because the envelope was just checked.
    const { apiVersion, kind } = object as { apiVersion: string; kind: string };
    const [group, version] = splitApiVersion(apiVersion);
    const groupKind = `${group}/${kind}`;
    const versions = schema.versionsOf(groupKind);
    if (versions === undefined) return unknownKind(schema, group, kind);
    if (!versions.includes(version)) {
      const served = versions.map((one) => `${group === "" ? "" : `${group}/`}${one}`);
      const message = `Unsupported value: ${print(apiVersion)}: supported values: ${served.map(print).join(", ")}`;
      return [violation("apiVersion", "FieldValueNotSupported", message)];
    }
    const found = new ViolationList();
    collectShape(found, schema, groupKind, withName(object));
    if (found.has(BLOCKING)) return found.toArray();
    const rules = schema.rulesOf(groupKind);
    if (rules !== undefined) found.addAll(ruleViolations(rules, object, old));
    found.addAll(schema.semanticViolations(groupKind, object));
    return found.toArray();
  };
}

function envelopeViolations(object: unknown): Violation[] {
  if (typeof object !== "object" || object === null || Array.isArray(object)) {
    return [violation("", "FieldValueTypeInvalid", "Invalid value: an object with apiVersion and kind is needed")];
  }
  return ["apiVersion", "kind"].flatMap((field) => {
    const value = memberOf(object, field);
    return typeof value === "string" && value !== "" ? [] : [violation(field, "FieldValueRequired", "Required value")];
  });
}

/** Valid kinds of the Gateway API, whether or not this gateway uses them. */
const OTHER_KINDS = new Set(
  "GRPCRoute UDPRoute ListenerSet BackendTLSPolicy XListenerSet XBackendTrafficPolicy XMesh".split(" "),
);

/**
 * Reports an unknown kind. In our own group it is always an error; in the Gateway API another implementation may define
 * it.
 */
function unknownKind(schema: ApiSchema, group: string, kind: string): Violation[] {
  if (group !== OWN_GROUP && group !== GATEWAY_API) return [];
  if (group === GATEWAY_API && OTHER_KINDS.has(kind)) {
    return [{ ...violation("kind", "FieldValueNotSupported", `kind ${print(kind)} is not used`), severity: "warning" }];
  }
  const kinds = schema.kindsOf(group);
  const next = suggestion(kind, kinds);
  const message = `Unsupported value: ${print(kind)}: supported values: ${kinds.map(print).join(", ")}`;
  if (group === OWN_GROUP) return [violation("kind", "FieldValueNotSupported", message, next)];
  return [
    {
      ...violation("kind", "FieldValueNotSupported", `kind ${print(kind)} is not used`, next),
      severity: next === "" ? "warning" : "error",
    },
  ];
}

function collectShape(found: ViolationList, schema: ApiSchema, groupKind: string, root: unknown): void {
  const context = {
    root,
    knownFields: (error: SchemaError) => schema.knownFields(groupKind, error),
    isSecret: (path: string) => schema.isSecret(groupKind, path),
  };
  const errors = schema.shapeErrors(groupKind, root);
  let taken = 0;
  for (const error of firstErrors(errors)) {
    if (found.isFull) break;
    taken++;
    const one = violationOf(error, context);
    if (one !== undefined) found.addAll([one]);
  }
  if (errors.length >= MAX_SCHEMA_ERRORS) found.leaveOut(Math.max(0, errors.length - taken));
}

/** Order of the checks in the API server: a text of a wrong length is not checked against the pattern. */
const LENGTHS: readonly string[] = ["maxLength", "minLength", "pattern"];

/** Leaves out errors that the API server omits because another error of the same value is enough. */
function firstErrors(errors: readonly SchemaError[]): readonly SchemaError[] {
  if (errors.length < 2) return errors;
  const keywords = new Map<string, Set<string>>();
  for (const { instancePath, keyword } of errors) {
    const known = keywords.get(instancePath);
    if (known === undefined) keywords.set(instancePath, new Set([keyword]));
    else known.add(keyword);
  }
  return errors.filter(({ instancePath, keyword }) => {
    const all = keywords.get(instancePath);
    const before = LENGTHS.slice(0, Math.max(0, LENGTHS.indexOf(keyword)));
    return !before.some((other) => all?.has(other));
  });
}

/** Adds a valid name to an object that has only `generateName`, as it may before it is stored. */
function withName(object: unknown): unknown {
  const metadata = memberOf(object, "metadata");
  if (typeof memberOf(metadata, "generateName") !== "string" || memberOf(metadata, "name") !== undefined) return object;
  // The cast holds: both were just seen to be objects.
  return { ...(object as object), metadata: { ...(metadata as object), name: "generated" } };
}

function splitApiVersion(apiVersion: string): [group: string, version: string] {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? ["", apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
}
