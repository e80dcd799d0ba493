/**
 * Turns our own keywords into what the API server knows: rules in CEL, patterns, lengths. The same lowering feeds the
 * CRDs and the rules that admission runs, so that both say the same.
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

/** Words of CEL that can be names of fields only in an escaped form. */
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

/** Every rule of a schema but the family of one-of. */
export function otherRules(schema: Schema): CelRule[] {
  const immutable = schema["x-gw-immutable"] === true;
  return [
    ...conditionRules(schema),
    ...boundRules(schema),
    ...(immutable ? [{ rule: "self == oldSelf", message: "the value may not change" }] : []),
    ...(schema["x-kubernetes-validations"] ?? []).map((rule) => ({ ...rule, rule: rule.rule.trim() })),
  ];
}

/** Every rule of a schema, in CEL. */
export function celRules(schema: Schema): CelRule[] {
  const counts = oneOfs(schema).map((one) => ({ rule: countRule(one), message: one.message }));
  return [...counts, ...otherRules(schema)];
}

/** The shortest form there is: these rules are the most frequent by far, and a CRD has a limit of bytes. */
function countRule({ kind, fields }: OneOf): string {
  const present = fields.map((field) => `has(self.${celField(field)})`);
  const [first = "false", second = "false"] = present;
  if (kind === "atLeast" || present.length === 1) return present.join(" || ");
  if (present.length > 2) return `[${present.join(", ")}].filter(x, x).size() ${kind === "exactly" ? "==" : "<="} 1`;
  return kind === "exactly" ? `${first} != ${second}` : `!${first} || !${second}`;
}

/** Bounds of values that are written as text: lengths of time, and sizes with a suffix. */
function boundRules(schema: Schema): CelRule[] {
  const shortest = schema["x-gw-min-duration"];
  const range = schema["x-gw-bytes"];
  return [
    ...(shortest === undefined
      ? []
      : [
          {
            // Rules run beside a wrong pattern, and a text that is no duration would fail in them.
            rule: `!self.matches('${FORMATS["duration"]?.pattern}') || duration(self) >= duration('${shortest}')`,
            message: `must be at least ${shortest}`,
          },
        ]),
    ...(range === undefined ? [] : [byteRule(range)]),
  ];
}

/**
 * Kubernetes knows no suffix K; here it means the same as k. Numbers have a minimum and a maximum instead, and what is no
 * quantity at all is for the pattern to refuse: rules run beside it.
 */
function byteRule({ min, max }: ByteRange): CelRule {
  const text = "string(self).replace('K', 'k').replace('ki', 'Ki')";
  const within = `quantity(${text}).compareTo(quantity('${min}')) >= 0 && quantity(${text}).compareTo(quantity('${max}')) <= 0`;
  return {
    rule: `type(self) == int || !isQuantity(${text}) || (${within})`,
    message: `must be from ${min} to ${max} bytes`,
  };
}

/** One rule for each field that the condition shuts out, so that the message can name it. */
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

/** The bounds that `x-gw-format` and `x-gw-bytes` imply; what the schema says itself wins. */
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

/** A copy without any keyword of ours, and with what they lower to. */
export function lowered(schema: Schema): Schema {
  const rules = celRules(schema);
  const kept = Object.entries(withFormat(schema)).filter(([keyword]) => !keyword.startsWith("x-gw-"));
  return { ...Object.fromEntries(kept), ...(rules.length > 0 ? { "x-kubernetes-validations": rules } : {}) };
}
