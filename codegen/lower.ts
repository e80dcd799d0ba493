/**
 * Turns our own keywords into what the API server knows: rules in CEL, patterns, lengths. The same lowering feeds the
 * CRDs and the rules that admission runs, so that both say the same.
 */
import type { CelRule, Schema } from "./schema.ts";
import { FORMATS } from "./vocabulary.ts";

/** A rule about how many of some fields are set. */
export interface OneOf {
  readonly kind: "exactly" | "atMost" | "atLeast";
  readonly fields: readonly string[];
  readonly message: string;
}

const FAMILY = [
  { keyword: "x-gw-exactly-one-of", kind: "exactly", words: "exactly one", verb: "must", test: "== 1" },
  { keyword: "x-gw-at-most-one-of", kind: "atMost", words: "at most one", verb: "may", test: "<= 1" },
  { keyword: "x-gw-at-least-one-of", kind: "atLeast", words: "at least one", verb: "must", test: ">= 1" },
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
  return FAMILY.flatMap(({ keyword, kind, words, verb }) => {
    const fields = schema[keyword];
    if (fields === undefined) return [];
    return [{ kind, fields, message: `${words} of the fields in [${fields.join(" ")}] ${verb} be set` }];
  });
}

/** Every rule of a schema but the family of one-of. */
export function otherRules(schema: Schema): CelRule[] {
  const immutable = schema["x-gw-immutable"] === true;
  return [
    ...conditionRules(schema),
    ...(immutable ? [{ rule: "self == oldSelf", message: "the value may not change" }] : []),
    ...(schema["x-kubernetes-validations"] ?? []).map((rule) => ({ ...rule, rule: rule.rule.trim() })),
  ];
}

/** Every rule of a schema, in CEL. */
export function celRules(schema: Schema): CelRule[] {
  const counts = oneOfs(schema).map(({ kind, fields, message }) => {
    const test = FAMILY.find((member) => member.kind === kind)?.test ?? "";
    const present = fields.map((field) => `has(self.${celField(field)})`);
    return { rule: `[${present.join(", ")}].filter(x, x == true).size() ${test}`, message };
  });
  return [...counts, ...otherRules(schema)];
}

/** One rule for each field that the condition shuts out, so that the message can name it. */
function conditionRules(schema: Schema): CelRule[] {
  const condition = schema["x-gw-if"];
  if (condition === undefined) return [];
  const when = Object.entries(condition.when);
  const allowed = [...when.map(([field]) => field), ...condition["then-only"]];
  const test = when
    .map(([field, value]) => `has(self.${celField(field)}) && self.${celField(field)} == '${value}'`)
    .join(" && ");
  const words = when.map(([field, value]) => `${field} is ${value}`).join(" and ");
  return Object.keys(schema.properties ?? {})
    .filter((field) => !allowed.includes(field))
    .map((field) => ({
      rule: `!(${test}) || !has(self.${celField(field)})`,
      message: `${field} may not be set when ${words}`,
      fieldPath: `.${field}`,
    }));
}

/** The bounds that `x-gw-format` implies; what the schema says itself wins. */
export function withFormat(schema: Schema): Schema {
  const format = schema["x-gw-format"];
  if (format === undefined) return schema;
  return { ...FORMATS[format], ...schema };
}

/** A copy without any keyword of ours, and with what they lower to. */
export function lowered(schema: Schema): Schema {
  const rules = celRules(schema);
  const kept = Object.entries(withFormat(schema)).filter(([keyword]) => !keyword.startsWith("x-gw-"));
  return { ...Object.fromEntries(kept), ...(rules.length > 0 ? { "x-kubernetes-validations": rules } : {}) };
}
