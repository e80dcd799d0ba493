/**
 * The edges of every bound of a kind, derived from its schemas: what is just inside, and what is just outside. Each field
 * of each component is tried once, on the shortest way to it.
 */
import { oneOfs } from "../../../codegen/lower.ts";
import { valueAt, withValue } from "./edit.ts";
import type { Site, Steps } from "./generate.ts";
import { faultsOf, generator, type Kind, objectOf } from "./kinds.ts";
import { placesOf, type Place } from "./places.ts";
import { Random } from "./random.ts";
import { soundSpec } from "./repair.ts";
import { textOfLength, textsOutside } from "./texts.ts";

export interface Edge {
  /** "GwPolicy spec.targetRefs: 16 items" */
  readonly title: string;
  readonly object: object;
  readonly isSound: boolean;
}

interface Try {
  readonly what: string;
  readonly value: unknown;
}

interface Tries {
  readonly inside: readonly Try[];
  readonly outside: readonly Try[];
}

export interface Edges {
  readonly edges: readonly Edge[];
  /** Values that their own schema takes, and for which no sound object was found. */
  readonly missed: readonly string[];
  /** The same where a rule names the field: it may say less than the bound. */
  readonly narrowed: readonly string[];
}

const SEED = 7;
/** Of the names that are tried. */
const LONGEST = 400;
const WRONG_TYPES: readonly unknown[] = [true, "text", 7, {}, []];

export function edgesOf(kind: Kind): Edges {
  const edges: Edge[] = [];
  const missed: string[] = [];
  const narrowed: string[] = [];
  const bases = new Map<string, unknown>();
  for (const place of placesOf(kind)) {
    const name = `${kind.kind} ${["spec", ...place.steps].join(".")}`;
    const base = baseOf(kind, place, bases);
    if (base === undefined) {
      missed.push(`${name}: any value`);
      continue;
    }
    bases.set(place.steps.join("."), base);
    const at = concrete(base, place.steps);
    const { inside, outside } = triesAt(place.site, valueAt(base, at));
    for (const { what, value } of inside) {
      const spec = soundWith(kind, { base, at, steps: place.steps }, value);
      if (spec === undefined) (generator.isRuled(place.site) ? narrowed : missed).push(`${name}: ${what}`);
      else edges.push({ title: `${name}: ${what}`, object: objectOf(kind, spec), isSound: true });
    }
    for (const { what, value } of outside) {
      const object = objectOf(kind, withValue(base, at, value));
      edges.push({ title: `${name}: ${what}`, object, isSound: false });
    }
  }
  return { edges, missed, narrowed };
}

/** A small sound spec that has the place; often that of the parent with one value more. */
function baseOf(kind: Kind, { steps, site }: Place, bases: ReadonlyMap<string, unknown>): unknown {
  const parent = bases.get(steps.slice(0, -1).join("."));
  if (parent !== undefined && steps.length > 0) {
    const at = concrete(parent, steps);
    if (valueAt(parent, at) !== undefined) return parent;
    const spec = withValue(parent, at, generator.value(site, new Random(SEED), 0));
    if (isSound(kind, spec)) return spec;
  }
  return soundSpec(kind, new Random(SEED), 0, { steps });
}

function soundWith(
  kind: Kind,
  { base, at, steps }: { readonly base: unknown; readonly at: Steps; readonly steps: Steps },
  value: unknown,
): unknown {
  const spec = withValue(base, at, value);
  return isSound(kind, spec) ? spec : soundSpec(kind, new Random(SEED), 0, { steps, value: () => value });
}

function isSound(kind: Kind, spec: unknown): boolean {
  return faultsOf(kind, objectOf(kind, spec)).length === 0;
}

/** The steps with "*" replaced by the first item or key that is there. */
function concrete(spec: unknown, steps: Steps): Steps {
  return steps.reduce<Steps>((done, step) => {
    if (step !== "*") return [...done, step];
    const holder = valueAt(spec, done);
    const [first = "0"] = typeof holder === "object" && holder !== null ? Object.keys(holder) : [];
    return [...done, first];
  }, []);
}

function triesAt(site: Site, value: unknown): Tries {
  const { schema } = site;
  const wrong = WRONG_TYPES.filter((other) => typeOf(other) !== typeOf(value));
  // A value of any JSON has no wrong type; an integer or a text have others.
  const isTyped = schema.type !== undefined && schema["x-kubernetes-preserve-unknown-fields"] !== true;
  const types = isTyped
    ? wrong.slice(0, 2).map((other) => ({ what: `a value of type ${typeOf(other)}`, value: other }))
    : [];
  const { inside, outside } = boundsAt(site, value);
  return { inside, outside: [...outside, ...types] };
}

function boundsAt(site: Site, value: unknown): Tries {
  const { schema } = site;
  if (schema.enum !== undefined) {
    const inside = schema.enum.map((one) => ({ what: `the value ${JSON.stringify(one)}`, value: one }));
    return { inside, outside: [{ what: "a value that is not in the list", value: "NotOneOfThem" }] };
  }
  if (schema.properties !== undefined) return structEdges(site, value);
  if (schema.type === "array" && Array.isArray(value)) return listEdges(site, value[0]);
  if (typeof schema.additionalProperties === "object") return mapEdges(site, value);
  if (schema.type === "string") return textEdges(site);
  if (schema.type === "integer" || schema.type === "number") return numberEdges(site);
  return { inside: [], outside: [] };
}

function structEdges(site: Site, value: unknown): Tries {
  const { schema } = site;
  const sites = generator.below(site);
  const present = new Set(Object.keys(value ?? {}));
  const outside: Try[] = [];
  for (const name of schema.required ?? []) {
    outside.push({ what: `without ${name}`, value: withValue(value, [name], undefined) });
  }
  if (schema["x-kubernetes-preserve-unknown-fields"] !== true) {
    outside.push({ what: "an unknown field", value: withValue(value, ["unheardOf"], 1) });
  }
  for (const { kind, fields } of oneOfs(schema)) {
    const none = fields.reduce((left, name) => withValue(left, [name], undefined), value);
    if (kind !== "atMost") outside.push({ what: `none of ${fields.join(", ")}`, value: none });
    const second = fields.find((name) => !present.has(name));
    const other = second === undefined ? undefined : sites.get(second);
    if (kind === "atLeast" || other === undefined || !fields.some((name) => present.has(name))) continue;
    const both = withValue(value, [second ?? ""], generator.value(other, new Random(SEED), 0));
    outside.push({ what: `two of ${fields.join(", ")}`, value: both });
  }
  return { inside: [], outside };
}

/** @param first an item that is sound where it stands, where there is one */
function listEdges(site: Site, first: unknown): Tries {
  const items = generator.below(site).get("*");
  const template = first ?? (items === undefined ? undefined : generator.value(items, new Random(SEED), 0));
  const { minItems = 0, maxItems } = site.schema;
  const inside: Try[] = [];
  const outside: Try[] = [];
  if (minItems > 0) {
    inside.push({ what: `${minItems} items`, value: itemsOf(site, template, minItems) });
    outside.push({ what: `${minItems - 1} items`, value: itemsOf(site, template, minItems - 1) });
  }
  if (maxItems !== undefined) {
    inside.push({ what: `${maxItems} items`, value: itemsOf(site, template, maxItems) });
    outside.push({ what: `${maxItems + 1} items`, value: itemsOf(site, template, maxItems + 1) });
  }
  const type = site.schema["x-kubernetes-list-type"];
  if (type === "set" || type === "map") outside.push({ what: "one item twice", value: [template, template] });
  return { inside, outside };
}

/** The template over and over, with other names where items may have none in common. */
function itemsOf(site: Site, template: unknown, count: number): unknown[] {
  const items = generator.below(site).get("*");
  if (items === undefined) return [];
  if (typeof template !== "object" || template === null) return scalars(items, template, count);
  const keys = site.schema["x-kubernetes-list-map-keys"] ?? ["name"];
  const sites = generator.below(items);
  const others = keys.flatMap((key) => {
    const child = sites.get(key);
    const value = valueAt(template, [key]);
    return child === undefined || value === undefined ? [] : [{ key, values: scalars(child, value, count) }];
  });
  return Array.from({ length: count }, (_, at) =>
    others.reduce<unknown>((item, { key, values }) => withValue(item, [key], values[at]), template),
  );
}

/** The template, and others that differ from it and from each other as long as the schema has any. */
function scalars(site: Site, template: unknown, count: number): unknown[] {
  const { enum: values, minimum = 0, maximum = minimum + count } = site.schema;
  const cycle = values ?? Array.from({ length: maximum - minimum + 1 }, (_, at) => minimum + at);
  const found = new Set([template]);
  if (site.schema["x-gw-format"] === "htpasswd") for (let at = 0; at < count; at++) found.add(`user${at}:{SHA}x`);
  else if (values !== undefined || typeof template === "number") for (const value of cycle) found.add(value);
  else {
    const { maxLength = LONGEST } = site.schema;
    for (let at = 1; found.size < count && at <= Math.min(maxLength, LONGEST); at++) {
      const text = textOfLength(textPlace(site), at);
      if (text !== undefined) found.add(text);
    }
  }
  const distinct = [...found];
  return Array.from({ length: count }, (_, at) => distinct[at % distinct.length]);
}

/** @param present entries that are sound where they stand */
function mapEdges(site: Site, present: unknown): Tries {
  const { minProperties = 0, maxProperties } = site.schema;
  const values = generator.below(site).get("*");
  if (values === undefined) return { inside: [], outside: [] };
  const one = generator.value(values, new Random(SEED), 0);
  const more = Array.from({ length: (maxProperties ?? minProperties) + 1 }, (_, at): [string, unknown] => [
    `k${at}`,
    one,
  ]);
  const entries = (count: number): unknown =>
    Object.fromEntries([...Object.entries(present ?? {}), ...more].slice(0, count));
  const bounds = [
    ...(minProperties > 0 ? [{ inside: minProperties, outside: minProperties - 1 }] : []),
    ...(maxProperties === undefined ? [] : [{ inside: maxProperties, outside: maxProperties + 1 }]),
  ];
  return {
    inside: bounds.map(({ inside }) => ({ what: `${inside} entries`, value: entries(inside) })),
    outside: bounds.map(({ outside }) => ({ what: `${outside} entries`, value: entries(outside) })),
  };
}

function textPlace({ schema, cel, field }: Site): Parameters<typeof textOfLength>[0] {
  const isExpression = schema["x-gw-cel"] !== undefined;
  return { schema, cel: isExpression ? cel : undefined, hints: generator.hintsFor({ schema, cel, field }) };
}

function textEdges(site: Site): Tries {
  const { minLength = 0, maxLength, pattern } = site.schema;
  const place = textPlace(site);
  const ofLength = (length: number): Try[] => {
    // A pattern may end before the bound; then there is nothing inside to try.
    const value = textOfLength(place, length);
    return value === undefined ? [] : [{ what: `${length} characters`, value }];
  };
  const inside = [
    ...(minLength > 0 ? ofLength(minLength) : []),
    ...(maxLength === undefined ? [] : ofLength(maxLength)),
  ];
  const outside: Try[] = [];
  if (minLength > 0) outside.push({ what: `${minLength - 1} characters`, value: "x".repeat(minLength - 1) });
  if (maxLength !== undefined) outside.push({ what: `${maxLength + 1} characters`, value: "x".repeat(maxLength + 1) });
  for (const value of textsOutside(place).slice(0, 2))
    outside.push({ what: `${JSON.stringify(value)} against ${pattern}`, value });
  return { inside, outside };
}

function numberEdges({ schema: { type, minimum, maximum } }: Site): Tries {
  const tries = (values: readonly (number | undefined)[]): Try[] =>
    values.flatMap((value) => (value === undefined ? [] : [{ what: `the number ${value}`, value }]));
  return {
    inside: tries([minimum, maximum]),
    outside: tries([
      minimum === undefined ? undefined : minimum - 1,
      maximum === undefined ? undefined : maximum + 1,
      type === "integer" ? (minimum ?? 0) + 0.5 : undefined,
    ]),
  };
}

function typeOf(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}
