/**
 * Objects of a kind, made from the graph of its schemas: everything that a shape says is kept; rules in CEL may refuse
 * the result. `wanted` names one place that the object must have, and may say what stands there.
 */
import type { SchemaGraph } from "../../../codegen/graph.ts";
import { oneOfs, otherRules, withFormat } from "../../../codegen/lower.ts";
import { walk, type Schema } from "../../../codegen/schema.ts";
import { deepEqual } from "../../../src/lib/deep-equal.ts";
import { Random } from "./random.ts";
import { textsFor } from "./texts.ts";

/** Names of fields and keys; "*" is the first item of a list or value of a map. */
export type Steps = readonly string[];

export interface Wanted {
  readonly steps: Steps;
  /** Instead of something that the schema takes. */
  readonly value?: (site: Site) => unknown;
}

/** Where a value stands. */
export interface Site {
  /** As it applies there: the component with what its use says laid over it, formats lowered. */
  readonly schema: Schema;
  /** Phase of the expressions at and below it: the outermost schema that says it wins. */
  readonly cel: string | undefined;
  readonly field: string;
}

export interface Generator {
  root(component: string): Site;
  /** Any value of the site. @param richness probability of an optional field; 0 gives the smallest value */
  value(site: Site, random: Random, richness: number, wanted?: Wanted): unknown;
  /** The sites below: by name of the field, "*" for items and values. */
  below(site: Site): ReadonlyMap<string, Site>;
  /** Texts that rules compare the field with. */
  hintsFor(site: Site): readonly string[];
  /** Whether a rule names the field or is about its value. */
  isRuled(site: Site): boolean;
}

const FADE = 0.8;
const MAX_ITEMS = 3;
/** Keys that the rules of a map demand, as in `'model' in self`. */
function keysInRules(schema: Schema): string[] {
  return (schema["x-kubernetes-validations"] ?? []).flatMap(({ rule }) =>
    [...rule.matchAll(/'([^']+)' in self\b/g)].map(([, key = ""]) => key),
  );
}

const MAP_KEYS = ["a", "b-c", "app.kubernetes.io/name", "X", "ä", "1"];
const JSONS: readonly unknown[] = [{}, { a: [1, "x", null] }, { deep: { er: true } }];

export function createGenerator(graph: SchemaGraph): Generator {
  const literals = literalsByField(graph);
  const siteOf = (schema: Schema, field: string, outer?: string): Site => {
    const resolved = withFormat(graph.resolve(schema));
    return { schema: resolved, field, cel: outer ?? resolved["x-gw-cel"] };
  };
  const below = ({ schema, field, cel }: Site): ReadonlyMap<string, Site> => {
    const sites = new Map<string, Site>();
    for (const [name, child] of Object.entries(schema.properties ?? {})) sites.set(name, siteOf(child, name, cel));
    if (schema.items !== undefined) sites.set("*", siteOf(schema.items, field, cel));
    if (typeof schema.additionalProperties === "object")
      sites.set("*", siteOf(schema.additionalProperties, field, cel));
    return sites;
  };
  const hintsFor = ({ field }: Site): readonly string[] => literals.get(field) ?? [];
  const isRuled = (site: Site): boolean => {
    const items = site.schema.items === undefined ? undefined : below(site).get("*");
    return literals.has(site.field) || [site, items].some((at) => at !== undefined && otherRules(at.schema).length > 0);
  };
  const scalar = new Scalars(hintsFor);

  const value: Generator["value"] = (site, random, richness, wanted) => {
    const { schema } = site;
    if (wanted?.steps.length === 0)
      return wanted.value === undefined ? value(site, random, richness) : wanted.value(site);
    if (schema.enum !== undefined) return random.pick(schema.enum);
    if (schema.properties !== undefined) return struct(site, random, richness, wanted);
    if (schema.type === "array") return list(site, random, richness, wanted);
    if (typeof schema.additionalProperties === "object") return map(site, random, richness, wanted);
    return scalar.value(site, random);
  };

  const struct: Generator["value"] = (site, random, richness, wanted) => {
    const { schema } = site;
    const [first = "", ...rest] = wanted?.steps ?? [];
    const names = chosenFields(schema, random, { richness, first });
    const sites = below(site);
    const made = Object.fromEntries(
      names.flatMap((name) => {
        const child = sites.get(name);
        if (child === undefined) return [];
        const further = name === first && wanted !== undefined ? { ...wanted, steps: rest } : undefined;
        return [[name, value(child, random, richness * FADE, further)]];
      }),
    );
    return first === "group" || first === "kind" ? made : { ...made, ...kindOf(schema, random) };
  };

  const list: Generator["value"] = (site, random, richness, wanted) => {
    const { schema } = site;
    const items = below(site).get("*");
    if (items === undefined) return [];
    const low = Math.max(schema.minItems ?? 0, wanted === undefined ? 0 : 1);
    const high = Math.max(low, Math.min(schema.maxItems ?? MAX_ITEMS, MAX_ITEMS));
    const count = richness === 0 ? low : random.between(low, random.chance(0.6) ? Math.min(high, low + 1) : high);
    const further = wanted === undefined ? undefined : { ...wanted, steps: wanted.steps.slice(1) };
    const made: unknown[] = [];
    // Lists without repetition get another chance for each item that repeats one.
    for (let tries = 0; made.length < count && tries < 4 * count + 8; tries++) {
      const item = value(items, random, richness * FADE, made.length === 0 ? further : undefined);
      if (!repeats(schema, made, item)) made.push(item);
    }
    return made;
  };

  const map: Generator["value"] = (site, random, richness, wanted) => {
    const { schema } = site;
    const values = below(site).get("*");
    if (values === undefined) return {};
    const low = Math.max(schema.minProperties ?? 0, wanted === undefined ? 0 : 1);
    const count = Math.min(richness === 0 ? low : random.between(low, low + 1), schema.maxProperties ?? Infinity);
    const keys = new Set<string>(keysInRules(site.schema));
    while (keys.size < count) keys.add(keys.size < 3 ? random.pick(MAP_KEYS) : `k${keys.size}`);
    const further = wanted === undefined ? undefined : { ...wanted, steps: wanted.steps.slice(1) };
    return Object.fromEntries(
      [...keys].map((key, at) => [key, value(values, random, richness * FADE, at === 0 ? further : undefined)]),
    );
  };

  return {
    root: (component) => siteOf({ $ref: component }, ""),
    value,
    below,
    hintsFor,
    isRuled,
  };
}

/** The required fields, one of each group that wants one, and some of the others. */
function chosenFields(
  schema: Schema,
  random: Random,
  { richness, first }: { readonly richness: number; readonly first: string },
): string[] {
  const chosen = new Set(schema.required ?? []);
  if (first !== "") chosen.add(first);
  const families = oneOfs(schema);
  const grouped = new Set(families.flatMap(({ fields }) => fields));
  for (const name of Object.keys(schema.properties ?? {})) {
    if (!grouped.has(name) && random.chance(richness)) chosen.add(name);
  }
  for (const { kind, fields } of families) {
    const present = fields.filter((name) => chosen.has(name));
    if (kind === "atLeast") for (const name of fields) if (random.chance(richness)) chosen.add(name);
    const isWanted = kind === "exactly" || (kind === "atLeast" && !fields.some((name) => chosen.has(name)));
    if (present.length === 0 && (isWanted || (kind === "atMost" && random.chance(richness)))) {
      chosen.add(random.pick(fields));
    }
  }
  return Object.keys(schema.properties ?? {}).filter((name) => chosen.has(name));
}

/** A reference names one of the kinds that it may name: most pairs of group and kind would be refused. */
function kindOf({ properties, "x-gw-ref": ref }: Schema, random: Random): object {
  if (ref === undefined || properties?.["group"] === undefined || properties["kind"] === undefined) return {};
  const [group, kind] = random.pick(ref.kinds).split("/");
  return { group, kind };
}

function repeats(schema: Schema, items: readonly unknown[], item: unknown): boolean {
  const keys = schema["x-kubernetes-list-map-keys"];
  if (keys === undefined) return items.some((other) => deepEqual(other, item));
  // Items of a list with keys are objects.
  const identity = (one: unknown): unknown[] => keys.map((key) => (one as Record<string, unknown>)[key]);
  return items.some((other) => deepEqual(identity(other), identity(item)));
}

class Scalars {
  readonly #hintsFor: (site: Site) => readonly string[];

  constructor(hintsFor: (site: Site) => readonly string[]) {
    this.#hintsFor = hintsFor;
  }

  value(site: Site, random: Random): unknown {
    const { schema, cel } = site;
    if (schema["x-kubernetes-int-or-string"] === true) {
      const { min, max } = schema["x-gw-bytes"] ?? { min: 1, max: 99 };
      return random.chance(0.7) ? random.pick([min, max]) : String(min);
    }
    switch (schema.type) {
      case "boolean":
        return random.chance(0.5);
      case "integer":
      case "number":
        return number(schema, random);
      case "string": {
        const texts = textsFor({
          schema,
          cel: schema["x-gw-cel"] === undefined ? undefined : cel,
          hints: this.#hintsFor(site),
        });
        if (texts.length === 0) throw new Error(`no text is known for ${site.field}: ${JSON.stringify(schema)}`);
        return random.pick(texts);
      }
      default:
        return random.pick(JSONS);
    }
  }
}

function number({ minimum, maximum, format }: Schema, random: Random): number {
  const low = minimum ?? (format === "int32" ? -(2 ** 31) : -1000);
  const high = maximum ?? (format === "int32" ? 2 ** 31 - 1 : 1_000_000);
  return random.pick([low, high, random.between(low, Math.min(high, low + 10)), random.between(low, high)]);
}

/** Field → the texts that stand in rules in which the field is named. */
function literalsByField(graph: SchemaGraph): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const rule of rulesOf(graph)) {
    const texts = [...rule.matchAll(/'([^']*)'|"([^"]*)"/g)].map(([, single, double]) => single ?? double ?? "");
    for (const [, field = ""] of rule.matchAll(/\.(\w+)/g)) {
      found.set(field, new Set([...(found.get(field) ?? []), ...texts]));
    }
  }
  return new Map([...found].map(([field, texts]) => [field, [...texts].sort()]));
}

function rulesOf(graph: SchemaGraph): string[] {
  return [...graph.components.values()].flatMap(({ schema }) =>
    [...walk(schema)].flatMap(([, part]) => otherRules(part).map(({ rule }) => rule)),
  );
}
