/**
 * The values of a running program, and access to maps. JavaScript numbers do not distinguish int from double, so this
 * module does: a safe integer is an int, every other number is a double, `Double` boxes a double with an integral
 * value, and a bigint is an int beyond 2^53.
 *
 * 1 → int    1.5, NaN → double    Double(1) → double 1.0    2n ** 60n → int    Uint(1n) → uint
 *
 * Numbers from JSON therefore need no conversion. An object counts as a map only when its prototype is Object.prototype
 * or null, and only its own properties are read: an expression cannot reach anything on a prototype.
 */

export class Double {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** Seconds since 1970, and nanoseconds from 0 to 999,999,999. */
export class Timestamp {
  readonly seconds: number;
  readonly nanos: number;
  constructor(seconds: number, nanos: number) {
    this.seconds = seconds;
    this.nanos = nanos;
  }

  static ofDate(date: Date): Timestamp {
    const ms = date.getTime();
    const seconds = Math.floor(ms / 1000);
    return new Timestamp(seconds, (ms - seconds * 1000) * 1_000_000);
  }
}

/** Seconds and nanoseconds, both with the same sign. */
export class Duration {
  readonly seconds: number;
  readonly nanos: number;
  constructor(seconds: number, nanos: number) {
    this.seconds = seconds;
    this.nanos = nanos;
  }

  static ofMilliseconds(ms: number): Duration {
    const seconds = Math.trunc(ms / 1000);
    return new Duration(seconds + 0, Math.round((ms - seconds * 1000) * 1_000_000) + 0);
  }
}

export class Type {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** An optional value (cel-spec "Optional values"); `value` is undefined when it is empty. */
export class Optional {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

export const NONE: Optional = new Optional(undefined);

/** A credential. It prints as "<redacted>" in every output; only `.unredacted()` returns the text. */
export class Secret {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }
}

export const REDACTED = "<redacted>";

/** A map whose entries are computed on demand, such as the attributes of a request or its headers. */
export abstract class AttributeMap {
  /** Budget that one lookup costs, in steps. */
  get lookupSteps(): number {
    return 1;
  }

  /** @returns undefined when the entry does not exist */
  abstract get(name: string): unknown;
  abstract has(name: string): boolean;
  abstract names(): string[];
}

/** A value type that a family of functions defines, such as an IP address, a URL or a quantity. */
export abstract class Opaque {
  abstract readonly typeName: string;
  abstract equals(other: unknown): boolean;
  /** Returns the result of `string(x)`. */
  abstract toText(): string;
}

/** Entries that become separate attributes of a log line or span; keys are relative to the name of the attribute. */
export class Flattened {
  readonly members: ReadonlyMap<unknown, unknown>;
  constructor(members: ReadonlyMap<unknown, unknown>) {
    this.members = members;
  }
}

export const TYPES: ReadonlyMap<string, Type> = new Map(
  [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "net.IP",
    "net.CIDR",
  ].map((name) => [name, new Type(name)]),
);

/**
 * Returns the name of a value's type; undefined for a value that no program can hold, such as a function or a foreign
 * class.
 */
export function kindOf(value: unknown): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isSafeInteger(value) ? "int" : "double";
    case "bigint":
      return "int";
    case "string":
      return "string";
    case "boolean":
      return "bool";
    case "object":
      return value === null ? "null_type" : kindOfObject(value);
    default:
      return undefined;
  }
}

function kindOfObject(value: object): string | undefined {
  if (Array.isArray(value)) return "list";
  if (isMap(value)) return "map";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Double) return "double";
  if (value instanceof Uint) return "uint";
  if (value instanceof Timestamp) return "google.protobuf.Timestamp";
  if (value instanceof Duration) return "google.protobuf.Duration";
  if (value instanceof Type) return "type";
  if (value instanceof Optional) return "optional_type";
  if (value instanceof Secret) return "secret";
  if (value instanceof Opaque) return value.typeName;
  return value instanceof Flattened ? "flattened" : undefined;
}

/** Converts a host value that needs a CEL form, which is only Date, before a program sees it. */
export function adopt(value: unknown): unknown {
  return value instanceof Date ? Timestamp.ofDate(value) : value;
}

export function isInt(value: unknown): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
}

export function isDouble(value: unknown): value is number | Double {
  return value instanceof Double || (typeof value === "number" && !Number.isSafeInteger(value));
}

export function doubleOf(value: number | Double): number {
  return typeof value === "number" ? value : value.value;
}

/** Converts a number to a CEL double. */
export function toDouble(value: number): number | Double {
  return Number.isSafeInteger(value) ? new Double(value) : value;
}

/** Converts an integer to a CEL int. The caller checks the 64-bit range. */
export function toInt(value: bigint): number | bigint {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

/** Returns the plain number of any numeric value; undefined for everything else. */
export function numberOf(value: unknown): number | bigint | undefined {
  if (typeof value === "number" || typeof value === "bigint") return value;
  return value instanceof Double || value instanceof Uint ? value.value : undefined;
}

export type CelMap = ReadonlyMap<unknown, unknown> | AttributeMap | Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is CelMap {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof Map || value instanceof AttributeMap) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The budget that pays for walks over a map; a Run is one. */
interface Budget {
  spend(steps: number): boolean;
}

/** @returns undefined when the entry does not exist */
export function mapGet(map: CelMap, key: unknown, budget: Budget): unknown {
  if (map instanceof Map) return map.get(key) ?? (map.has(key) ? map.get(key) : numericEntry(map, key, budget));
  return typeof key === "string" ? mapField(map, key, budget) : undefined;
}

/** Looks up a string key, which needs no walk. */
export function mapField(map: CelMap, name: string, budget: Budget): unknown {
  if (map instanceof Map) return map.get(name);
  if (map instanceof AttributeMap) return budget.spend(map.lookupSteps) ? undefined : adopt(map.get(name));
  // isMap accepts Maps, AttributeMaps and plain objects, so this is a plain object.
  return Object.hasOwn(map, name) ? adopt((map as Record<string, unknown>)[name]) : undefined;
}

/**
 * Finds an entry by numeric value, because 1, 1u and 1.0 name the same entry. It has to walk the map, and charges for
 * that.
 */
function numericEntry(map: ReadonlyMap<unknown, unknown>, key: unknown, budget: Budget): unknown {
  const wanted = numberOf(key);
  if (wanted === undefined || budget.spend(map.size >> 1)) return undefined;
  for (const [candidate, value] of map) {
    const number = numberOf(candidate);
    // oxlint-disable-next-line eqeqeq -- number and bigint compare by value only with ==
    if (number !== undefined && number == wanted) return value;
  }
  return undefined;
}

export function mapHas(map: CelMap, key: unknown, budget: Budget): boolean {
  if (map instanceof Map) return mapGet(map, key, budget) !== undefined;
  return typeof key === "string" && mapHasField(map, key, budget);
}

export function mapHasField(map: CelMap, name: string, budget: Budget): boolean {
  if (map instanceof Map) return map.has(name);
  if (map instanceof AttributeMap) return !budget.spend(map.lookupSteps) && map.has(name);
  // Do not call a getter: a presence test must not compute a costly value.
  const property = Object.getOwnPropertyDescriptor(map, name);
  return property !== undefined && (property.get !== undefined || property.value !== undefined);
}

/** Number of keys of large plain objects, known after their first walk. */
const sizes = new WeakMap<CelMap, number>();
const LARGE = 4096;

/**
 * Lists the keys of a map and charges for them. The number of keys of a plain object is known only after they have been
 * listed, so the first walk is charged afterwards and later ones in advance. With a spent budget the list is empty.
 */
export function mapKeys(map: CelMap, budget: Budget): readonly unknown[] {
  const known = sizes.get(map);
  if (budget.spend(known === undefined ? 0 : known >> 1)) return [];
  const keys = keysOf(map);
  if (known !== undefined) return keys;
  if (keys.length > LARGE) sizes.set(map, keys.length);
  return budget.spend(keys.length >> 1) ? [] : keys;
}

function keysOf(map: CelMap): unknown[] {
  if (map instanceof Map) return [...map.keys()];
  return map instanceof AttributeMap ? map.names() : Object.keys(map);
}

export function mapSize(map: CelMap, budget: Budget): number {
  return map instanceof Map ? map.size : mapKeys(map, budget).length;
}
