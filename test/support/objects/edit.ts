/** Plain data along paths of steps: read, replaced and removed without touching the original. */
import type { Generator, Site, Steps } from "./generate.ts";

type Json = Record<string, unknown>;

function isContainer(value: unknown): value is Json | unknown[] {
  return typeof value === "object" && value !== null;
}

export function valueAt(root: unknown, steps: Steps): unknown {
  return steps.reduce<unknown>((value, step) => {
    if (!isContainer(value)) return undefined;
    return Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined;
  }, root);
}

/** @param value undefined removes the member or item */
export function withValue(root: unknown, steps: Steps, value: unknown): unknown {
  const [step, ...rest] = steps;
  if (step === undefined) return value;
  if (Array.isArray(root)) {
    const changed = withValue(root[Number(step)], rest, value);
    return root.toSpliced(Number(step), 1, ...(changed === undefined ? [] : [changed]));
  }
  const object = isContainer(root) ? (root as Json) : {}; // an array was handled above
  const changed = withValue(object[step], rest, value);
  const others = Object.entries(object).filter(([name]) => name !== step);
  return Object.fromEntries(changed === undefined ? others : [...others, [step, changed]]);
}

/** Every value of an object that the schemas know, with its place; parents before children. */
export function* sitesOf(
  generator: Generator,
  site: Site,
  value: unknown,
  steps: Steps = [],
): Generator_<{ readonly steps: Steps; readonly site: Site; readonly value: unknown }> {
  yield { steps, site, value };
  if (!isContainer(value)) return;
  const below = generator.below(site);
  for (const [name, member] of Object.entries(value)) {
    const child = below.get(site.schema.properties === undefined ? "*" : name);
    if (child !== undefined) yield* sitesOf(generator, child, member, [...steps, name]);
  }
}

type Generator_<T> = globalThis.Generator<T>;

/** The site at steps that may not be there yet. */
export function siteAt(generator: Generator, site: Site, steps: Steps): Site | undefined {
  return steps.reduce<Site | undefined>((at, step) => {
    if (at === undefined) return undefined;
    return generator.below(at).get(at.schema.properties === undefined ? "*" : step);
  }, site);
}

/** "spec.a[0].b" below spec → ["a", "0", "b"] */
export function stepsOf(path: string): Steps {
  return path
    .split(/[.[\]]+/)
    .filter((step) => step !== "")
    .slice(1);
}
