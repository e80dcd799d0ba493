/**
 * The type of a schema in the generator: OpenAPI v3 in the subset of Kubernetes, `$ref`, and our own `x-gw-` keywords.
 */

export interface CelRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly fieldPath?: string;
  readonly reason?: string;
  readonly optionalOldSelf?: boolean;
}

export interface Reference {
  /** "group/Kind"; the core group is empty: "/Secret". */
  readonly kinds: readonly string[];
  /** Whether the reference may name another namespace, which then needs a ReferenceGrant. */
  readonly grant: boolean;
  /** Whether the value selects objects by their labels instead of naming one. */
  readonly selector?: boolean;
}

interface Condition {
  readonly when: Readonly<Record<string, string>>;
  readonly "then-only": readonly string[];
}

/** One group of field names, or several: a component that includes another one also has the groups of that one. */
type FieldGroups = readonly string[] | readonly (readonly string[])[];

/** Bounds of a size in bytes, both inclusive. */
export interface ByteRange {
  readonly min: number;
  readonly max: number;
}

export interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  required?: readonly string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  oneOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  allOf?: readonly Schema[];
  not?: Schema;
  nullable?: boolean;
  "x-kubernetes-validations"?: readonly CelRule[];
  "x-kubernetes-list-type"?: string;
  "x-kubernetes-list-map-keys"?: readonly string[];
  "x-kubernetes-map-type"?: string;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-gw-exactly-one-of"?: FieldGroups;
  "x-gw-at-most-one-of"?: FieldGroups;
  "x-gw-at-least-one-of"?: FieldGroups;
  "x-gw-if"?: Condition;
  "x-gw-immutable"?: boolean;
  "x-gw-ref"?: Reference;
  "x-gw-secret"?: boolean;
  "x-gw-cel"?: string;
  "x-gw-cel-or"?: string;
  /** The phase is another one where fields beside the expression have these values. */
  "x-gw-cel-if"?: { readonly when: Readonly<Record<string, string>>; readonly phase: string };
  "x-gw-bytes"?: ByteRange;
  "x-gw-min-duration"?: string;
  "x-gw-fail-closed"?: boolean;
  /** Keys of a map that users must not set. */
  "x-gw-reserved"?: readonly string[];
  "x-gw-format"?: string;
  "x-gw-default"?: string;
  "x-gw-include"?: string;
  "x-gw-conditional"?: string;
  /** Marks null as a valid value; set only for foreign schemas. */
  "x-gw-null"?: boolean;
  /** Components whose fields are included in this one, the nearest first; set only by the loader. */
  "x-gw-included"?: readonly string[];
  /**
   * Field that excludes all others; set only by the loader. A rule enforces it as well, and editors use this keyword.
   */
  "x-gw-alone"?: string;
}

/** A schema with a name: one node of the graph, and one type in TypeScript. */
export interface Component {
  readonly name: string;
  /** Source file without extension: "traffic", or "httproute" for a kind of the Gateway API. */
  readonly file: string;
  readonly schema: Schema;
}

export const ONE_OF_KEYWORDS = ["x-gw-exactly-one-of", "x-gw-at-most-one-of", "x-gw-at-least-one-of"] as const;

/** Returns the groups of one keyword of the one-of family, those of the component before those that it includes. */
export function fieldGroups(schema: Schema, keyword: (typeof ONE_OF_KEYWORDS)[number]): (readonly string[])[] {
  const groups: string[][] = [];
  const single: string[] = [];
  for (const part of schema[keyword] ?? []) {
    if (typeof part === "string") single.push(part);
    else groups.push([...part]);
  }
  return single.length > 0 ? [single, ...groups] : groups;
}

/** Visits a schema and every schema below it, with the path from the start; it does not follow references. */
export function* walk(schema: Schema, path = ""): Generator<readonly [string, Schema]> {
  yield [path, schema];
  for (const [name, child] of Object.entries(schema.properties ?? {})) yield* walk(child, `${path}.${name}`);
  if (schema.items !== undefined) yield* walk(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object") yield* walk(schema.additionalProperties, `${path}{}`);
}

/** Returns a copy in which `change` has replaced every schema, children first; it does not follow references. */
export function mapSchema(schema: Schema, change: (schema: Schema) => Schema): Schema {
  const copy: Schema = { ...schema };
  if (schema.properties !== undefined) {
    copy.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, child]) => [name, mapSchema(child, change)]),
    );
  }
  if (schema.items !== undefined) copy.items = mapSchema(schema.items, change);
  if (typeof schema.additionalProperties === "object") {
    copy.additionalProperties = mapSchema(schema.additionalProperties, change);
  }
  return change(copy);
}

/** Tells whether the schema accepts any JSON, null included. */
export function isAnything(schema: Schema): boolean {
  return schema.type === undefined && schema["x-kubernetes-preserve-unknown-fields"] === true;
}

/** Tells whether the schema is an object with named fields, which must be a component and becomes an interface. */
export function isStruct(schema: Schema): boolean {
  return schema.type === "object" && schema.properties !== undefined;
}
