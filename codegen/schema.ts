/** The shape of a schema as the generator sees it: OpenAPI v3 as Kubernetes knows it, `$ref` and our own keywords. */

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
  /** Whether another namespace may be named, and then needs a ReferenceGrant. */
  readonly grant: boolean;
  /** The value selects objects by their labels instead of naming one. */
  readonly selector?: boolean;
}

interface Condition {
  readonly when: Readonly<Record<string, string>>;
  readonly "then-only": readonly string[];
}

/** Names of fields, or several such groups: a component that includes another one has its groups too. */
type FieldGroups = readonly string[] | readonly (readonly string[])[];

/** What a size in bytes may be, both ends included. */
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
  "x-gw-protects"?: boolean;
  /** Keys of a map that users may not set. */
  "x-gw-reserved"?: readonly string[];
  "x-gw-format"?: string;
  "x-gw-default"?: string;
  "x-gw-include"?: string;
  "x-gw-conditional"?: string;
  /** Written for schemas that are not ours: null is a value too. */
  "x-gw-null"?: boolean;
  /** Written by the loader alone: the components whose fields are in this one, the nearest first. */
  "x-gw-included"?: readonly string[];
  /** Written by the loader alone: the field that excludes all others. A rule says so too; editors read this. */
  "x-gw-alone"?: string;
}

/** A schema with a name: the node of the graph and one type in TypeScript. */
export interface Component {
  readonly name: string;
  /** The source file without extension: "traffic", or "httproute" for a kind of the Gateway API. */
  readonly file: string;
  readonly schema: Schema;
}

export const ONE_OF_KEYWORDS = ["x-gw-exactly-one-of", "x-gw-at-most-one-of", "x-gw-at-least-one-of"] as const;

/** The groups of one keyword of the one-of family, the component's own before those that it includes. */
export function fieldGroups(schema: Schema, keyword: (typeof ONE_OF_KEYWORDS)[number]): (readonly string[])[] {
  const groups: string[][] = [];
  const single: string[] = [];
  for (const part of schema[keyword] ?? []) {
    if (typeof part === "string") single.push(part);
    else groups.push([...part]);
  }
  return single.length > 0 ? [single, ...groups] : groups;
}

/** A schema and every schema below it, with its path from the start; references are not followed. */
export function* walk(schema: Schema, path = ""): Generator<readonly [string, Schema]> {
  yield [path, schema];
  for (const [name, child] of Object.entries(schema.properties ?? {})) yield* walk(child, `${path}.${name}`);
  if (schema.items !== undefined) yield* walk(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object") yield* walk(schema.additionalProperties, `${path}{}`);
}

/** A copy in which `change` has seen every schema, children first; references are not followed. */
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

/** Whether any JSON fits, null included. */
export function isAnything(schema: Schema): boolean {
  return schema.type === undefined && schema["x-kubernetes-preserve-unknown-fields"] === true;
}

/** Whether the schema is an object with named fields: what must be a component and becomes an interface. */
export function isStruct(schema: Schema): boolean {
  return schema.type === "object" && schema.properties !== undefined;
}
