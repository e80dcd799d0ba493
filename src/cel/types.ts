/** The types that expressions have before they run. `dyn` is "not known": it goes with everything. */

/** A type by its name, with what it is made of: `int`, `list<int>`, `map<string, dyn>`, `net.IP`. */
export interface NamedType {
  readonly kind: "named";
  readonly name: string;
  readonly parameters: readonly CelType[];
}

/** Stands for any one type within a signature; within a check, for a type that is not found yet. */
interface TypeVariable {
  readonly kind: "variable";
  readonly name: string;
}

/** A variable of the gateway with named fields. Where a map is wanted it is a map with texts as keys. */
export interface ObjectType {
  readonly kind: "object";
  readonly name: string;
  readonly fields: ReadonlyMap<string, CelType>;
  /** The type of all other fields; undefined when there are none. */
  readonly rest: CelType | undefined;
}

export type CelType = NamedType | TypeVariable | ObjectType;

export function named(name: string, ...parameters: CelType[]): NamedType {
  return { kind: "named", name, parameters };
}

export const DYN: NamedType = named("dyn");
export const BOOL: NamedType = named("bool");
export const INT: NamedType = named("int");
export const STRING: NamedType = named("string");
export const NULL: NamedType = named("null_type");
export const TYPE: NamedType = named("type");
/** Fields of a message: looked up without case; one value is a text, several are a list. */
export const HEADERS: ObjectType = { kind: "object", name: "headers", fields: new Map(), rest: DYN };

const NUMBERS: ReadonlySet<string> = new Set(["int", "uint", "double"]);
const KEYS: ReadonlySet<string> = new Set(["int", "uint", "string", "bool", "dyn"]);

export function listOf(item: CelType): NamedType {
  return named("list", item);
}

export function mapOf(key: CelType, value: CelType): NamedType {
  return named("map", key, value);
}

export function optionalOf(value: CelType): NamedType {
  return named("optional_type", value);
}

export function isDyn(type: CelType): boolean {
  return type.kind === "named" && type.name === "dyn";
}

export function isNumber(type: CelType): boolean {
  return type.kind === "named" && NUMBERS.has(type.name);
}

/** Whether a map may have keys of this type. */
export function isKey(type: CelType): boolean {
  return type.kind === "variable" || (type.kind === "named" && KEYS.has(type.name));
}

/** @returns the parameters when the type has this name */
export function parametersOf(type: CelType, name: string): readonly CelType[] | undefined {
  return type.kind === "named" && type.name === name ? type.parameters : undefined;
}

/** Short names of the notation, which error messages use too. */
export const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  ["null", "null_type"],
  ["optional", "optional_type"],
  ["timestamp", "google.protobuf.Timestamp"],
  ["duration", "google.protobuf.Duration"],
  ["ip", "net.IP"],
  ["cidr", "net.CIDR"],
  ["url", "net.URL"],
  ["quantity", "kubernetes.Quantity"],
]);
const LONG_NAMES: ReadonlyMap<string, string> = new Map([...SHORT_NAMES].map(([short, long]) => [long, short]));

export function typeText(type: CelType): string {
  if (type.kind === "object") return type.name;
  // A type that nothing determines may be any.
  if (type.kind === "variable") return "dyn";
  const name = LONG_NAMES.get(type.name) ?? type.name;
  return type.parameters.length === 0 ? name : `${name}<${type.parameters.map(typeText).join(", ")}>`;
}
