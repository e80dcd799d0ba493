/**
 * Checks whether a schema is structural, as the API server requires of CRDs, for `gwproxy generate types`. A schema
 * that is not structural does not say what an object holds, so no types can be generated from it. It reports every
 * error with its path.
 */

/** Keywords that a structural schema must not use, with the alternative. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  $ref: "write the schema out where it is used",
  definitions: "write the schemas out where they are used",
  dependencies: "use a rule in x-kubernetes-validations",
  patternProperties: "use additionalProperties",
  additionalItems: "give the list one schema in items",
};
const JUNCTORS = ["allOf", "anyOf", "oneOf"] as const;
/** Keywords that only the schema itself may set, and not a branch of a junctor. */
const NOT_IN_BRANCHES = ["type", "default", "description", "title", "additionalProperties", "nullable"];

export interface StructuralError {
  /** Path such as ".spec.rules[].name"; "" is the root. */
  readonly path: string;
  readonly message: string;
}

export function findStructuralErrors(root: unknown): StructuralError[] {
  const errors: StructuralError[] = [];
  const fail = (path: string, message: string): void => void errors.push({ path, message });
  visit(root, "", fail);
  if (isRecord(root) && root["type"] !== "object") fail("", "must have the type object");
  return errors;
}

type Fail = (path: string, message: string) => void;

function visit(schema: unknown, path: string, fail: Fail): void {
  if (!isRecord(schema)) return fail(path, "must be a schema");
  const isFree = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const isIntOrString = schema["x-kubernetes-int-or-string"] === true;
  const { type, properties, items, additionalProperties } = schema;
  if (type === undefined && !isFree && !isIntOrString && schema["$ref"] === undefined) fail(path, "has no type");
  else if (type !== undefined && !TYPES.has(type)) fail(path, `has the type ${JSON.stringify(type)}, which is none`);
  for (const [keyword, next] of Object.entries(FORBIDDEN)) {
    if (schema[keyword] !== undefined) fail(path, `uses ${keyword}, which no structural schema may: ${next}`);
  }
  if (schema["uniqueItems"] === true) fail(path, "uses uniqueItems: use x-kubernetes-list-type: set");
  if (properties !== undefined && additionalProperties !== undefined && additionalProperties !== false) {
    fail(path, "has properties and additionalProperties: it must be a struct or a map");
  }
  if (additionalProperties === false)
    fail(path, "has additionalProperties: false; leave it out, unknown fields are pruned");
  if (type === "array" && items === undefined) fail(path, "is a list without items");
  if (isRecord(properties)) {
    for (const [name, child] of Object.entries(properties)) visit(child, `${path}.${name}`, fail);
  }
  if (Array.isArray(items)) fail(path, "has a list of items schemas: give it one");
  else if (items !== undefined) visit(items, `${path}[]`, fail);
  if (isRecord(additionalProperties)) visit(additionalProperties, `${path}{}`, fail);
  visitBranches(schema, path, fail, isIntOrString);
}

const TYPES: ReadonlySet<unknown> = new Set(["object", "array", "string", "integer", "number", "boolean"]);

function visitBranches(schema: Readonly<Record<string, unknown>>, path: string, fail: Fail, mayType: boolean): void {
  for (const junctor of JUNCTORS) {
    const branches = schema[junctor];
    if (Array.isArray(branches)) {
      for (const [at, branch] of branches.entries()) visitBranch(branch, `${path}.${junctor}[${at}]`, fail, mayType);
    }
  }
  if (schema["not"] !== undefined) visitBranch(schema["not"], `${path}.not`, fail, mayType);
}

function visitBranch(branch: unknown, path: string, fail: Fail, mayType: boolean): void {
  if (!isRecord(branch)) return fail(path, "must be a schema");
  for (const keyword of NOT_IN_BRANCHES) {
    // The API server allows only `anyOf: [{type: integer}, {type: string}]`, beside int-or-string.
    if (branch[keyword] !== undefined && !(keyword === "type" && mayType)) {
      fail(path, `sets ${keyword}, which only the schema around it may`);
    }
  }
  for (const keyword of Object.keys(FORBIDDEN)) if (branch[keyword] !== undefined) fail(path, `uses ${keyword}`);
  if (isRecord(branch["properties"])) {
    for (const [name, child] of Object.entries(branch["properties"]))
      visitBranch(child, `${path}.${name}`, fail, false);
  }
  if (branch["items"] !== undefined) visitBranch(branch["items"], `${path}[]`, fail, false);
  visitBranches(branch, path, fail, mayType);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
