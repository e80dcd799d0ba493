/**
 * The values of a running program. A JavaScript number says neither int nor double, so here: a safe integer is an
 * int, any other number is a double, `Double` boxes the doubles that look like integers, and a bigint is an int
 * beyond 2^53. Numbers from JSON therefore need no conversion. Objects count as maps only when they are plain, and
 * only by their own properties: nothing on a prototype can be reached.
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

/** Seconds since 1970 and nanoseconds, 0 to 999,999,999. */
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

/** Seconds and nanoseconds of the same sign. */
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

/** `value` undefined: none. */
export class Optional {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

export const NONE: Optional = new Optional(undefined);

/** A credential. It prints as "<redacted>" wherever it ends up; only `.unredacted()` gives the text. */
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

/** A map whose entries are made on demand: the attributes of a request, its headers. */
export abstract class AttributeMap {
  /** Steps that one look-up costs. */
  get lookupSteps(): number {
    return 1;
  }

  /** @returns undefined when there is no such entry */
  abstract get(name: string): unknown;
  abstract has(name: string): boolean;
  abstract names(): string[];
}

/** A value that a function family brings along (an address, a URL, a quantity). */
export abstract class Opaque {
  abstract readonly typeName: string;
  abstract equals(other: unknown): boolean;
  /** What `string(x)` gives. */
  abstract toText(): string;
}

/** Entries that each become an attribute of their own; keys are relative to the name of the attribute. */
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

/** The name of a value's type; undefined for what no program can hold (a function, a foreign class). */
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

/** Host values that need a form of this room before a program sees them. */
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

/** A number as a double of this room. */
export function toDouble(value: number): number | Double {
  return Number.isSafeInteger(value) ? new Double(value) : value;
}

/** An integer of any size as an int of this room; the range is the caller's business. */
export function toInt(value: bigint): number | bigint {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

/** The numeric view of any number; undefined for everything else. */
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

/** Pays for walks over a map; a Run is one. */
interface Budget {
  spend(steps: number): boolean;
}

/** @returns undefined when there is no such entry */
export function mapGet(map: CelMap, key: unknown, budget: Budget): unknown {
  if (map instanceof Map) return map.get(key) ?? (map.has(key) ? map.get(key) : numericEntry(map, key, budget));
  return typeof key === "string" ? mapField(map, key, budget) : undefined;
}

/** The same for a text, which needs no walk. */
export function mapField(map: CelMap, name: string, budget: Budget): unknown {
  if (map instanceof Map) return map.get(name);
  if (map instanceof AttributeMap) return budget.spend(map.lookupSteps) ? undefined : adopt(map.get(name));
  // What is neither a Map nor an AttributeMap is a plain object, by the definition of isMap.
  return Object.hasOwn(map, name) ? adopt((map as Record<string, unknown>)[name]) : undefined;
}

/** 1, 1u and 1.0 name the same entry. */
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
  // A getter is not called: asking for presence must not make a costly value.
  const property = Object.getOwnPropertyDescriptor(map, name);
  return property !== undefined && (property.get !== undefined || property.value !== undefined);
}

/** Of maps that take long to list. */
const sizes = new WeakMap<CelMap, number>();
const LARGE = 4096;

/**
 * Nobody knows how many keys a plain object has before they are listed, so the first time they are charged for after
 * that, and later ones before it. A spent budget lists nothing.
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
