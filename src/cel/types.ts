/** The static types of expressions, for the checker. `dyn` is an unknown type and is compatible with every other. */

/** A type with a name and parameters: `int`, `list<int>`, `map<string, dyn>`, `net.IP`. */
export interface NamedType {
  readonly kind: "named";
  readonly name: string;
  readonly parameters: readonly CelType[];
}

/** A type variable: any one type in a signature, and a type that is not determined yet during a check. */
interface TypeVariable {
  readonly kind: "variable";
  readonly name: string;
}

/** A gateway variable with named fields. It is accepted where a map with string keys is expected. */
export interface ObjectType {
  readonly kind: "object";
  readonly name: string;
  readonly fields: ReadonlyMap<string, CelType>;
  /** Type of all other fields; undefined when no others exist. */
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
/** Header fields of a message: names are case-insensitive; one value is a string, several are a list. */
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

/** Tells whether a map may have keys of this type. */
export function isKey(type: CelType): boolean {
  return type.kind === "variable" || (type.kind === "named" && KEYS.has(type.name));
}

/** @returns the parameters when the type has this name, otherwise undefined */
export function parametersOf(type: CelType, name: string): readonly CelType[] | undefined {
  return type.kind === "named" && type.name === name ? type.parameters : undefined;
}

/** Short names for signatures and for error messages. */
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
  // A type variable that nothing determines may be any type.
  if (type.kind === "variable") return "dyn";
  const name = LONG_NAMES.get(type.name) ?? type.name;
  return type.parameters.length === 0 ? name : `${name}<${type.parameters.map(typeText).join(", ")}>`;
}
