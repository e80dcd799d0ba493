/** One fault, or one thing more, in an object: what a typing error or a client of another version could send. */
import type { Schema } from "../../../codegen/schema.ts";
import { codePointLength } from "../../../src/lib/code-point-length.ts";
import { sitesOf, withValue } from "./edit.ts";
import type { Site, Steps } from "./generate.ts";
import { generator, type Kind } from "./kinds.ts";
import { Random } from "./random.ts";
import { textsOutside } from "./texts.ts";

interface Place {
  readonly steps: Steps;
  readonly site: Site;
  readonly value: unknown;
}

/** @returns undefined when the mutation does not apply to the place */
type Mutation = (spec: unknown, place: Place, random: Random) => unknown;

const MUTATIONS: readonly Mutation[] = [
  // Gone, null, or of another type.
  (spec, { steps }) => (steps.length === 0 ? undefined : withValue(spec, steps, undefined)),
  (spec, { steps }) => withValue(spec, steps, null),
  (spec, { steps, value }, random) =>
    withValue(
      spec,
      steps,
      random.pick([true, 7, 1.5, "x", "", {}, [], [{}]].filter((other) => typeof other !== typeof value)),
    ),
  // A field more: one that exists, or one that does not.
  (spec, { steps, site }, random) => {
    const missing = [...generator.below(site)].filter(([name]) => name !== "*");
    if (missing.length === 0) return undefined;
    const [name, child] = random.pick(missing);
    return withValue(spec, [...steps, name], generator.value(child, random, 0));
  },
  (spec, { steps, site }) =>
    site.schema.properties === undefined ? undefined : withValue(spec, [...steps, "unheardOf"], 1),
  // Beyond a bound.
  (spec, { steps, site, value }, random) => {
    const other = typeof value === "string" ? textBeyond(site, value, random) : undefined;
    return other === undefined ? undefined : withValue(spec, steps, other);
  },
  (spec, { steps, site: { schema }, value }, random) =>
    typeof value === "number" ? withValue(spec, steps, numberBeyond(schema, random)) : undefined,
  (spec, { steps, site: { schema }, value }, random) => {
    if (!Array.isArray(value)) return undefined;
    const most = schema.maxItems ?? value.length;
    return withValue(
      spec,
      steps,
      random.pick([[], [...value, ...value], Array.from({ length: Math.min(most + 1, 200) }, () => value[0])]),
    );
  },
  (spec, { steps, site: { schema }, value }, random) => {
    if (typeof schema.additionalProperties !== "object" || typeof value !== "object" || value === null)
      return undefined;
    const one = Object.values(value)[0];
    if (one === undefined) return undefined;
    const count = random.pick([0, Math.min((schema.maxProperties ?? 0) + 1, 200)]);
    return withValue(spec, steps, Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, one])));
  },
  // Something else that its place could take.
  (spec, { steps, site }, random) => withValue(spec, steps, generator.value(site, random, 0.4)),
];

/** The spec with one change. */
export function mutated(kind: Kind, spec: unknown, random: Random): unknown {
  const places = [...sitesOf(generator, kind.spec, spec)].filter(({ value }) => value !== undefined);
  for (;;) {
    // Some mutation applies to every place: the loop ends.
    const changed = random.pick(MUTATIONS)(spec, random.pick(places), random);
    if (changed !== undefined) return changed;
  }
}

function textBeyond(site: Site, value: string, random: Random): string {
  const { schema } = site;
  const outside = textsOutside({ schema, cel: undefined, hints: [] });
  const length = (schema.maxLength ?? codePointLength(value)) + 1;
  return random.pick(["", `${value} `, `${value}${value}`, "x".repeat(length), "é".repeat(length), ...outside]);
}

function numberBeyond({ minimum, maximum }: Schema, random: Random): number {
  return random.pick([(minimum ?? 0) - 1, (maximum ?? 0) + 1, 2 ** 31, -(2 ** 31) - 1, 0, 0.5, 1e30]);
}
