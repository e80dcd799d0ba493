/**
 * One object → everything that is wrong with it. In: plain data and what the schemas know. Out: violations. Pure. In the
 * API server's order: size, shape, then rules when the shape is right; then what no rule of a CRD can see.
 */
import { suggestion } from "../lib/suggest.ts";
import { boundsViolation } from "./bounds.ts";
import { type ExpressionPlace, expressionViolations } from "./expressions.ts";
import { type SchemaError, print, violation, violationOf } from "./messages.ts";
import { memberOf } from "./paths.ts";
import { patternViolations } from "./patterns.ts";
import { type RuleNode, ruleViolations } from "./rules.ts";
import type { Violation } from "./violation.ts";

/** What is known of the kinds, by "group/Kind". */
export interface ApiSchema {
  /** Served versions of the kind; undefined for a kind that is not known. */
  versionsOf(groupKind: string): readonly string[] | undefined;
  kindsOf(group: string): readonly string[];
  shapeErrors(groupKind: string, object: unknown): readonly SchemaError[];
  rulesOf(groupKind: string): RuleNode | undefined;
  expressionsOf(groupKind: string): readonly ExpressionPlace[];
  knownFields(groupKind: string, error: SchemaError): readonly string[];
  isSecret(groupKind: string, path: string): boolean;
}

export type Validator = (object: unknown, old?: unknown) => Violation[];

const OWN_GROUP = "gwproxy.dev";
const GATEWAY_API = "gateway.networking.k8s.io";

export function createValidator(schema: ApiSchema): Validator {
  return (object, old) => {
    const bounds = boundsViolation(object);
    if (bounds !== undefined) return [bounds];
    const envelope = envelopeViolations(object);
    if (envelope.length > 0) return envelope;
    // The envelope was just checked.
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
    const shape = shapeViolations(schema, groupKind, withName(object));
    if (shape.length > 0) return shape;
    const rules = schema.rulesOf(groupKind);
    return [
      ...(rules === undefined ? [] : ruleViolations(rules, object, old)),
      ...(group === OWN_GROUP ? expressionViolations(object, schema.expressionsOf(groupKind)) : []),
      ...(group === GATEWAY_API ? patternViolations(kind, object) : []),
    ];
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

/** Kinds of the Gateway API that are sound, whether or not they are used here. */
const OTHER_KINDS = new Set(
  "GRPCRoute TCPRoute TLSRoute UDPRoute ListenerSet BackendTLSPolicy XListenerSet XBackendTrafficPolicy XMesh".split(
    " ",
  ),
);

/** In our group nobody else can mean something by it; in the Gateway API it may be a kind that others implement. */
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

function shapeViolations(schema: ApiSchema, groupKind: string, root: unknown): Violation[] {
  const context = {
    root,
    knownFields: (error: SchemaError) => schema.knownFields(groupKind, error),
    isSecret: (path: string) => schema.isSecret(groupKind, path),
  };
  return schema.shapeErrors(groupKind, root).flatMap((error) => violationOf(error, context) ?? []);
}

/** Before storage an object may have `generateName` alone; the name that the server will give it is a sound one. */
function withName(object: unknown): unknown {
  const metadata = memberOf(object, "metadata");
  if (typeof memberOf(metadata, "generateName") !== "string" || memberOf(metadata, "name") !== undefined) return object;
  // Both were just seen to be objects.
  return { ...(object as object), metadata: { ...(metadata as object), name: "generated" } };
}

function splitApiVersion(apiVersion: string): [group: string, version: string] {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? ["", apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
}
