/**
 * Translates errors of the generated validators into the messages of the API server (field.Error of apimachinery,
 * kube-openapi), so that `gwproxy validate`, the webhook and a CRD say the same. validator.ts uses it.
 */
import { quote } from "../lib/quote.ts";
import { suggestion } from "../lib/suggest.ts";
import { childPath, resolvePointer } from "./paths.ts";
import { isInt64, print, printFloat } from "./print.ts";
import type { Violation } from "./violation.ts";

/** One error of a generated validator, in the form of ajv. */
export interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly schemaPath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

/** Context that a message may need besides the error. */
export interface MessageContext {
  /** The whole object. */
  readonly root: unknown;
  /** Returns the field names that the schema of an unknown field's parent defines. */
  readonly knownFields: (error: SchemaError) => readonly string[];
  /** Whether the value at a path is secret, so that no message may repeat it. */
  readonly isSecret: (path: string) => boolean;
}

const MASK = "***";
const UNKNOWN_FIELD = "unknown field";

/** @returns undefined for errors that only repeat others, such as the summary of a branch */
export function violationOf(error: SchemaError, context: MessageContext): Violation | undefined {
  const { path, value } = resolvePointer(context.root, error.instancePath);
  const shown = context.isSecret(path) ? MASK : value;
  const { params } = error;
  switch (error.keyword) {
    case "required":
      return violation(childPath(path, String(params["missingProperty"])), "FieldValueRequired", "Required value");
    case "additionalProperties":
      return unknownField(path, String(params["additionalProperty"]), context.knownFields(error));
    case "enum":
      return violation(
        path,
        "FieldValueNotSupported",
        `Unsupported value: ${print(shown)}: supported values: ${list(params["allowedValues"])
          .map((one) => quote(typeof one === "string" ? one : JSON.stringify(one)))
          .join(", ")}`,
      );
    case "type":
      return typeViolation(path, value, params["type"]);
    case "maxLength":
      return violation(path, "FieldValueTooLong", `Too long: may not be more than ${counted(params["limit"], "byte")}`);
    case "maxItems":
      return tooMany(path, Array.isArray(value) ? value.length : 0, params["limit"]);
    case "maxProperties":
      return tooMany(
        path,
        typeof value === "object" && value !== null ? Object.keys(value).length : 0,
        params["limit"],
      );
    case "minItems":
      return invalid(
        path,
        Array.isArray(value) ? value.length : 0,
        `should have at least ${String(params["limit"])} items`,
      );
    case "minProperties":
      return invalid(
        path,
        Object.keys(Object(value)).length,
        `should have at least ${String(params["limit"])} properties`,
      );
    case "minLength":
      return invalid(path, shown, `should be at least ${String(params["limit"])} chars long`);
    case "pattern":
      return invalid(path, shown, `should match '${String(params["pattern"])}'`);
    case "format":
      return invalid(path, shown, `must be of type ${String(params["format"])}: ${print(shown)}`);
    case "minimum":
    case "maximum":
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      return invalid(path, shown, limitText(error.keyword, params["limit"], value));
    case "multipleOf":
      return invalid(path, shown, `should be a multiple of ${String(params["multipleOf"])}`);
    case "x-kubernetes-list-type":
    case "duplicate":
      return violation(path, "FieldValueDuplicate", `Duplicate value: ${print(duplicated(params["key"], shown))}`);
    case "notObject":
      return violation(
        path,
        "FieldValueInvalid",
        `Invalid value: ${print(shown)}: must be an object for an array of list-type map`,
      );
    case "if":
    case "allOf":
      return undefined;
    default:
      return invalid(path, shown, error.message ?? "is not valid");
  }
}

/**
 * Returns the key of a duplicate item. The members that identify an item of a keyed list are names and may be shown,
 * even when the item holds secrets.
 */
function duplicated(key: unknown, shown: unknown): unknown {
  return typeof key === "object" && key !== null ? key : shown;
}

/** The API server prints the type that it found instead of the value. */
function typeViolation(path: string, value: unknown, type: unknown): Violation {
  const wanted = Array.isArray(type) ? type.join(",") : String(type);
  const actual = typeName(value);
  const detail = `${label(path)} in body must be of type ${wanted}: ${JSON.stringify(actual)}`;
  return violation(path, "FieldValueTypeInvalid", `Invalid value: ${print(actual)}: ${detail}`);
}

/** Whether the name of the field is wrong, and not its value. */
export function isUnknownField({ message }: Violation): boolean {
  return message.startsWith(UNKNOWN_FIELD);
}

function unknownField(parent: string, name: string, known: readonly string[]): Violation {
  const path = childPath(parent, name);
  return {
    ...violation(path, "FieldValueInvalid", `${UNKNOWN_FIELD} ${JSON.stringify(path)}`),
    suggestion: suggestion(name, known),
  };
}

function tooMany(path: string, actual: number, limit: unknown): Violation {
  return violation(path, "FieldValueTooMany", `Too many: ${actual}: must have at most ${counted(limit, "item")}`);
}

function invalid(path: string, value: unknown, detail: string): Violation {
  return violation(path, "FieldValueInvalid", `Invalid value: ${print(value)}: ${label(path)} in body ${detail}`);
}

export function violation(path: string, reason: string, message: string, next = ""): Violation {
  return { path, severity: "error", reason, message, suggestion: next };
}

const LIMITS: Readonly<Record<string, string>> = {
  minimum: "greater than or equal to",
  maximum: "less than or equal to",
  exclusiveMinimum: "greater than",
  exclusiveMaximum: "less than",
};

/** The API server prints a limit as a fraction when the value is a fraction. */
function limitText(keyword: string, limit: unknown, value: unknown): string {
  const isFloat = typeof value === "number" && typeof limit === "number" && !isInt64(value);
  return `should be ${LIMITS[keyword] ?? "within"} ${isFloat ? printFloat(limit) : String(limit)}`;
}

/** The root has no name of its own. */
function label(path: string): string {
  return path === "" ? "object" : path;
}

function counted(limit: unknown, noun: string): string {
  return `${String(limit)} ${noun}${limit === 1 ? "" : "s"}`;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return isInt64(value) ? "integer" : "number";
  return typeof value;
}
