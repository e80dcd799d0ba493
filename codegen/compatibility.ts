/**
 * Tests whether the CRDs still accept every object that the baseline accepted: no field removed, no bound tightened, no
 * field newly required, no enum value removed, no pattern changed, no new CEL rule. Two rules cannot be compared by
 * meaning, so a changed rule counts as a new one; the generated rules that count fields may name more fields.
 *
 * The baseline is a table of lines in which equal parts of the schemas appear once and are referenced by line number
 * (hash consing). `baseline.ts` reads and writes it.
 */
import { compare, stableText } from "./print.ts";
import type { CelRule, Schema } from "./schema.ts";

/** Root schema of each kind, as in the CRD. */
export type Roots = ReadonlyMap<string, Schema>;

/**
 * The parts of a schema on which stored objects depend. Children are line numbers, so that equal parts are written
 * once.
 */
interface Line {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly properties?: Readonly<Record<string, number>>;
  readonly items?: number;
  readonly values?: number;
}

const UPPER = ["maxLength", "maximum", "maxItems", "maxProperties"] as const;
const LOWER = ["minLength", "minimum", "minItems", "minProperties"] as const;
/** Keywords that may be removed, but neither added nor changed. */
const SAME_OR_NONE = ["pattern", "format", "x-kubernetes-int-or-string"] as const;
const SAME = ["type", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"] as const;
const OTHER = ["enum", "nullable", "required", "default", "x-kubernetes-preserve-unknown-fields"] as const;
const KEPT = [...UPPER, ...LOWER, ...SAME_OR_NONE, ...SAME, ...OTHER] as const;

/**
 * Prints the baseline: one part of the schemas per line, each part before its users, and the kinds on the last line.
 */
export function printBaseline(roots: Roots): string {
  const numbers = new Map<string, number>();
  const numberOf = (schema: Schema): number => {
    const text = stableText(lineOf(schema, numberOf));
    const known = numbers.get(text) ?? numbers.size;
    numbers.set(text, known);
    return known;
  };
  const kinds = Object.fromEntries([...roots].map(([kind, schema]) => [kind, numberOf(schema)]));
  return [...numbers.keys(), stableText(kinds), ""].join("\n");
}

function lineOf(schema: Schema, numberOf: (schema: Schema) => number): Line {
  const { properties, items, additionalProperties: values } = schema;
  const facts = Object.fromEntries(KEPT.flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key]]])));
  const rules = schema["x-kubernetes-validations"]?.map(({ rule }) => ({ rule }));
  // Sort the fields, so that equal schemas get equal numbers.
  const fields = Object.entries(properties ?? {}).sort(([a], [b]) => compare(a, b));
  return {
    // Leave the messages out: they may change.
    facts: rules === undefined ? facts : { ...facts, "x-kubernetes-validations": rules },
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(fields.map(([name, child]) => [name, numberOf(child)])) }),
    ...(items === undefined ? {} : { items: numberOf(items) }),
    ...(typeof values === "object" ? { values: numberOf(values) } : {}),
  };
}

/** @throws SyntaxError when the text is not a baseline */
export function parseBaseline(text: string): Roots {
  const lines = text.trimEnd().split("\n");
  // The cast is safe for the output of printBaseline; another shape fails in the lines below.
  const kinds = JSON.parse(lines.at(-1) ?? "{}") as Record<string, number>;
  const made: Schema[] = [];
  for (const line of lines.slice(0, -1)) {
    const { facts, properties, items, values } = JSON.parse(line) as Line;
    made.push({
      ...facts,
      ...(properties === undefined
        ? {}
        : { properties: Object.fromEntries(Object.entries(properties).map(([name, at]) => [name, made[at] ?? {}])) }),
      ...(items === undefined ? {} : { items: made[items] ?? {} }),
      ...(values === undefined ? {} : { additionalProperties: made[values] ?? {} }),
    });
  }
  return new Map(Object.entries(kinds).map(([kind, at]) => [kind, made[at] ?? {}]));
}

/**
 * Lists every way in which `after` accepts less than `before`: "GwPolicy spec.targetRefs: maxItems was 16 and is 8".
 * One change of a part that is used in many places is reported once.
 */
export function breaks(before: Roots, after: Roots): string[] {
  const places = new Map<string, string[]>();
  for (const [kind, old] of before) {
    const schema = after.get(kind);
    const found = schema === undefined ? [{ path: kind, text: "the kind is gone" }] : breaksAt(old, schema, kind);
    for (const { path, text } of found) places.set(text, [...(places.get(text) ?? []), path]);
  }
  return [...places].map(([text, [path, ...more]]) => {
    return `${path}: ${text}${more.length === 0 ? "" : ` (and in ${more.length} more places)`}`;
  });
}

interface Break {
  readonly path: string;
  readonly text: string;
}

function breaksAt(old: Schema, schema: Schema, path: string): Break[] {
  const all = [...boundBreaks(old, schema), ...factBreaks(old, schema), ...ruleBreaks(old, schema)];
  const found: Break[] = all.map((text) => ({ path, text }));
  for (const [name, child] of Object.entries(old.properties ?? {})) {
    const other = schema.properties?.[name];
    const at = path.includes(" ") ? `${path}.${name}` : `${path} ${name}`;
    if (other !== undefined) found.push(...breaksAt(child, other, at));
    else if (schema["x-kubernetes-preserve-unknown-fields"] !== true) {
      found.push({ path: at, text: "the field is gone" });
    }
  }
  if (old.items !== undefined && schema.items !== undefined) {
    found.push(...breaksAt(old.items, schema.items, `${path}[]`));
  }
  const values = [old.additionalProperties, schema.additionalProperties];
  if (typeof values[0] === "object" && typeof values[1] === "object") {
    found.push(...breaksAt(values[0], values[1], `${path}{}`));
  } else if (typeof values[0] === "object") found.push({ path, text: "it is no map any more" });
  return found;
}

function boundBreaks(old: Schema, schema: Schema): string[] {
  const told = (key: string, was: number | undefined, is: number): string =>
    was === undefined ? `${key} is new: ${is}` : `${key} was ${was} and is ${is}`;
  const upper = UPPER.flatMap((key) => {
    const is = schema[key];
    return is !== undefined && is < (old[key] ?? Infinity) ? [told(key, old[key], is)] : [];
  });
  const lower = LOWER.flatMap((key) => {
    const is = schema[key];
    // A minimal length or count of zero is not a bound.
    const none = key === "minimum" ? -Infinity : 0;
    return is !== undefined && is > (old[key] ?? none) ? [told(key, old[key], is)] : [];
  });
  return [...upper, ...lower];
}

function factBreaks(old: Schema, schema: Schema): string[] {
  const told = (value: unknown): string => (value === undefined ? "none" : stableText(value));
  const changed = (key: keyof Schema): string => `${key} was ${told(old[key])} and is ${told(schema[key])}`;
  const differs = (key: keyof Schema): boolean => told(old[key]) !== told(schema[key]);
  const required = (schema.required ?? []).filter((name) => {
    // A field with a default is never missing.
    return old.required?.includes(name) !== true && schema.properties?.[name]?.default === undefined;
  });
  const gone =
    schema.enum === undefined ? [] : (old.enum ?? []).filter((value) => schema.enum?.includes(value) !== true);
  return [
    ...SAME.filter(differs).map(changed),
    ...SAME_OR_NONE.filter((key) => schema[key] !== undefined && differs(key)).map(changed),
    ...required.sort(compare).map((name) => `${name} is required now`),
    ...gone.map((value) => `the value ${JSON.stringify(value)} is gone`),
    ...(schema.enum !== undefined && old.enum === undefined ? ["only listed values are taken now"] : []),
    ...(old.nullable === true && schema.nullable !== true ? ["null is no value any more"] : []),
    ...(old["x-kubernetes-preserve-unknown-fields"] === true && schema["x-kubernetes-preserve-unknown-fields"] !== true
      ? ["fields that are not known are dropped now"]
      : []),
    ...(old.default !== undefined && differs("default") ? [changed("default")] : []),
  ];
}

/** Lists the rules that old objects may violate, which are those whose text is new. */
function ruleBreaks(old: Schema, schema: Schema): string[] {
  const isNew = (field: string): boolean => old.properties !== undefined && old.properties[field] === undefined;
  const known = new Set(old["x-kubernetes-validations"]?.map(({ rule }) => formOf(rule, () => false)));
  return (schema["x-kubernetes-validations"] ?? [])
    .filter((rule) => !isOfNewField(rule, isNew))
    .flatMap(({ rule, message }) => {
      const form = formOf(rule, isNew);
      return form === undefined || known.has(form) ? [] : [`a rule is new or has changed: ${message ?? rule}`];
    });
}

/** Tells whether a rule applies only when a field is set that old objects cannot have. */
function isOfNewField({ rule }: CelRule, isNew: (field: string) => boolean): boolean {
  const field = /^!has\(self\.(\w+)\) \|\| /.exec(rule)?.[1];
  return field !== undefined && isNew(field);
}

/**
 * Returns the text of a rule in a comparable form. For rules that count fields (codegen/lower.ts) it leaves out the new
 * fields, which old objects cannot have; undefined when the remaining rule always holds.
 */
function formOf(rule: string, isNew: (field: string) => boolean): string | undefined {
  const kind = COUNTS.find(({ shape }) => shape.test(rule))?.kind;
  if (kind === undefined) return rule;
  const fields = [...rule.matchAll(/has\(self\.(\w+)\)/g)].flatMap(([, field = ""]) => (isNew(field) ? [] : [field]));
  return kind === "atMost" && fields.length < 2 ? undefined : `${kind} ${fields.join()}`;
}

const HAS = String.raw`has\(self\.\w+\)`;
const COUNTS = [
  { kind: "atLeast", shape: new RegExp(`^${HAS}( \\|\\| ${HAS})*$`) },
  { kind: "exactly", shape: new RegExp(`^${HAS} != ${HAS}$`) },
  { kind: "atMost", shape: new RegExp(`^!${HAS} \\|\\| !${HAS}$`) },
  { kind: "exactly", shape: new RegExp(String.raw`^\[${HAS}(, ${HAS})*\]\.filter\(x, x\)\.size\(\) == 1$`) },
  { kind: "atMost", shape: new RegExp(String.raw`^\[${HAS}(, ${HAS})*\]\.filter\(x, x\)\.size\(\) <= 1$`) },
] as const;
