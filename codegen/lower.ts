/**
 * Lowers our own keywords to those of the API server: CEL rules, patterns, lengths. The CRDs and the rules that
 * admission runs come from the same lowering, so they cannot differ.
 */
import { fieldGroups, type ByteRange, type CelRule, type Schema } from "./schema.ts";
import { FORMATS } from "./vocabulary.ts";

/** A rule about how many of some fields are set. */
export interface OneOf {
  readonly kind: "exactly" | "atMost" | "atLeast";
  readonly fields: readonly string[];
  readonly message: string;
}

const FAMILY = [
  { keyword: "x-gw-exactly-one-of", kind: "exactly", words: "exactly one", verb: "must" },
  { keyword: "x-gw-at-most-one-of", kind: "atMost", words: "at most one", verb: "may" },
  { keyword: "x-gw-at-least-one-of", kind: "atLeast", words: "at least one", verb: "must" },
] as const;

/** Reserved words of CEL, which as field names must be escaped (x-kubernetes-validations). */
const RESERVED: ReadonlySet<string> = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

export function celField(name: string): string {
  return RESERVED.has(name) ? `__${name}__` : name;
}

export function oneOfs(schema: Schema): OneOf[] {
  return FAMILY.flatMap(({ keyword, kind, words, verb }) =>
    fieldGroups(schema, keyword).map((fields) => {
      return { kind, fields, message: `${words} of the fields in [${fields.join(" ")}] ${verb} be set` };
    }),
  );
}

/** Returns every rule of a schema except the one-of family. */
export function otherRules(schema: Schema): CelRule[] {
  const immutable = schema["x-gw-immutable"] === true;
  return [
    ...conditionRules(schema),
    ...boundRules(schema),
    ...(immutable ? [{ rule: "self == oldSelf", message: "the value may not change" }] : []),
    ...(schema["x-kubernetes-validations"] ?? []).map((rule) => ({ ...rule, rule: rule.rule.trim() })),
  ];
}

/** Returns every rule of a schema, in CEL. */
export function celRules(schema: Schema): CelRule[] {
  const counts = oneOfs(schema).map((one) => ({ rule: countRule(one), message: one.message }));
  return [...counts, ...otherRules(schema)];
}

/** Prints the shortest form of a rule: these rules are by far the most frequent, and the size of a CRD is limited. */
function countRule({ kind, fields }: OneOf): string {
  const present = fields.map((field) => `has(self.${celField(field)})`);
  const [first = "false", second = "false"] = present;
  if (kind === "atLeast" || present.length === 1) return present.join(" || ");
  if (present.length > 2) return `[${present.join(", ")}].filter(x, x).size() ${kind === "exactly" ? "==" : "<="} 1`;
  return kind === "exactly" ? `${first} != ${second}` : `!${first} || !${second}`;
}

/** Returns the bounds of values that are written as text: durations, and sizes with a suffix. */
function boundRules(schema: Schema): CelRule[] {
  const shortest = schema["x-gw-min-duration"];
  const range = schema["x-gw-bytes"];
  return [
    ...(shortest === undefined
      ? []
      : [
          {
            // Test the pattern first: rules also run on values that violate it, and duration() would fail on them.
            rule: `!self.matches('${FORMATS["duration"]?.pattern}') || duration(self) >= duration('${shortest}')`,
            message: `must be at least ${shortest}`,
          },
        ]),
    ...(range === undefined ? [] : [byteRule(range)]),
  ];
}

/**
 * Bounds a size in bytes. Kubernetes does not know the suffix K; here it means the same as k. Plain numbers have a
 * minimum and a maximum instead, and the pattern rejects text that is not a quantity, so the rule must pass such text.
 */
function byteRule({ min, max }: ByteRange): CelRule {
  const text = "string(self).replace('K', 'k').replace('ki', 'Ki')";
  const within = `quantity(${text}).compareTo(quantity('${min}')) >= 0 && quantity(${text}).compareTo(quantity('${max}')) <= 0`;
  return {
    rule: `type(self) == int || !isQuantity(${text}) || (${within})`,
    message: `must be from ${min} to ${max} bytes`,
  };
}

/** Returns one rule for each field that the condition excludes, so that the message can name the field. */
function conditionRules(schema: Schema): CelRule[] {
  const condition = schema["x-gw-if"];
  if (condition === undefined) return [];
  const when = Object.entries(condition.when);
  const allowed = [...when.map(([field]) => field), ...condition["then-only"]];
  const test = when
    .flatMap(([field, value]) => {
      const isThere = schema.properties?.[field]?.default !== undefined;
      return [...(isThere ? [] : [`!has(self.${celField(field)})`]), `self.${celField(field)} != '${value}'`];
    })
    .join(" || ");
  const words = when.map(([field, value]) => `${field} is ${value}`).join(" and ");
  return Object.keys(schema.properties ?? {})
    .filter((field) => !allowed.includes(field))
    .map((field) => ({
      rule: `!has(self.${celField(field)}) || ${test}`,
      message: `${field} may not be set when ${words}`,
      fieldPath: `.${field}`,
    }));
}

/** Adds the bounds that `x-gw-format` and `x-gw-bytes` imply; bounds in the schema itself take precedence. */
export function withFormat(schema: Schema): Schema {
  const format = schema["x-gw-format"];
  const range = schema["x-gw-bytes"];
  if (format === undefined && range === undefined) return schema;
  return {
    ...(format === undefined ? {} : FORMATS[format]),
    ...schema,
    ...(range === undefined ? {} : { minimum: range.min, maximum: range.max }),
  };
}

/** Returns a copy in which our own keywords are replaced by their lowered form. */
export function lowered(schema: Schema): Schema {
  const rules = celRules(schema);
  const kept = Object.entries(withFormat(schema)).filter(([keyword]) => !keyword.startsWith("x-gw-"));
  return { ...Object.fromEntries(kept), ...(rules.length > 0 ? { "x-kubernetes-validations": rules } : {}) };
}
