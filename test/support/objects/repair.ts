/**
 * Makes sound objects. What has the right shape is refused by rules more often than not; small changes where a fault is
 * reported are tried until none is left. Chance decides, with a seed, so that no corner of the schemas is left out.
 */
import type { Violation } from "../../../src/admission/violation.ts";
import { siteAt, sitesOf, stepsOf, valueAt, withValue } from "./edit.ts";
import type { Site, Steps, Wanted } from "./generate.ts";
import { faultsOf, generator, hasShape, type Kind, objectOf } from "./kinds.ts";
import type { Random } from "./random.ts";

/** Two or three changes may be needed at once, none of which helps alone. */
const TRIES = 100;
const TRIES_WITH_VALUE = 6;
const EDITS = 120;

/** @returns the spec of an object that admission takes and that has what is wanted; undefined when none was found */
export function soundSpec(kind: Kind, random: Random, richness: number, wanted?: Wanted): unknown {
  const tries = wanted?.value === undefined ? TRIES : TRIES_WITH_VALUE;
  for (let attempt = 0; attempt < tries; attempt++) {
    // Large objects have more to go wrong: the later attempts are smaller ones.
    const spec = generator.value(kind.spec, random, attempt < tries / 2 ? richness : 0, wanted);
    const repaired = new Repair(kind, random, wanted).run(spec);
    if (repaired !== undefined) return repaired;
  }
  return undefined;
}

class Repair {
  readonly #kind: Kind;
  readonly #random: Random;
  readonly #wanted: Wanted | undefined;

  constructor(kind: Kind, random: Random, wanted: Wanted | undefined) {
    this.#kind = kind;
    this.#random = random;
    this.#wanted = wanted;
  }

  run(start: unknown): unknown {
    let spec = start;
    let faults = faultsOf(this.#kind, objectOf(this.#kind, spec));
    for (let at = 0; at < EDITS && faults.length > 0; at++) {
      const fault = this.#random.pick(faults);
      const edited = this.#random.chance(0.6) ? this.#named(spec, fault) : this.#nearby(spec, fault);
      if (edited === undefined || !hasShape(this.#kind, objectOf(this.#kind, edited))) continue;
      const left = faultsOf(this.#kind, objectOf(this.#kind, edited));
      if (left.length > faults.length) continue;
      spec = edited;
      faults = left;
    }
    return faults.length === 0 ? spec : undefined;
  }

  /** Changes a field that the message names, at the place of the fault or beside it. */
  #named(spec: unknown, { path, message }: Violation): unknown {
    const at = stepsOf(path);
    const words = new Set(message.match(/[A-Za-z][\w.-]*/g));
    const candidates = [at, at.slice(0, -1), at.slice(0, -2)].flatMap((steps) => {
      const site = siteAt(generator, this.#kind.spec, steps);
      return [...words].filter((word) => isField(site, word)).map((word) => [...steps, ...word.split(".")]);
    });
    if (candidates.length === 0) return undefined;
    const steps = this.#random.pick(candidates);
    if (this.#random.chance(0.4)) return this.#removed(spec, steps);
    const said = siteAt(generator, this.#kind.spec, steps)?.schema.enum?.filter((value) => words.has(String(value)));
    const other = this.#random.chance(0.4) ? this.#textElsewhere(spec, steps) : undefined;
    if (other !== undefined) return withValue(spec, steps, other);
    if (said === undefined || said.length === 0 || this.#isKept(steps)) return this.#replaced(spec, steps);
    return withValue(spec, steps, this.#random.pick(said));
  }

  /** Names that refer to each other are made by repeating one that is there. */
  #textElsewhere(spec: unknown, steps: Steps): unknown {
    if (typeof valueAt(spec, steps) !== "string" || isGiven(this.#wanted, [...steps, ""])) return undefined;
    const texts = [...sitesOf(generator, this.#kind.spec, spec)].flatMap(({ value }) =>
      typeof value === "string" ? [value] : [],
    );
    return this.#random.pick(texts);
  }

  /** One change at, above or just below the place of the fault. */
  #nearby(spec: unknown, { path }: Violation): unknown {
    const at = stepsOf(path);
    const above = at.slice(0, Math.max(0, at.length - this.#random.pick([0, 0, 1, 1, 2, 3])));
    const site = siteAt(generator, this.#kind.spec, above);
    if (site === undefined) return undefined;
    const place = this.#random.pick([...sitesOf(generator, site, valueAt(spec, above), above)]);
    switch (this.#random.between(0, 2)) {
      case 0:
        return this.#removed(spec, place.steps);
      case 1: {
        const names = [...generator.below(place.site).keys()].filter((name) => name !== "*");
        return names.length === 0 ? undefined : this.#replaced(spec, [...place.steps, this.#random.pick(names)]);
      }
      default:
        return this.#replaced(spec, place.steps);
    }
  }

  #removed(spec: unknown, steps: Steps): unknown {
    return this.#isKept(steps) ? undefined : withValue(spec, steps, undefined);
  }

  #replaced(spec: unknown, steps: Steps): unknown {
    const site = siteAt(generator, this.#kind.spec, steps);
    if (site === undefined || isGiven(this.#wanted, steps)) return undefined;
    const rest = restOf(this.#wanted, steps);
    const further = this.#wanted === undefined || rest === undefined ? undefined : { ...this.#wanted, steps: rest };
    return withValue(spec, steps, generator.value(site, this.#random, this.#random.pick([0, 0, 0.3]), further));
  }

  /** Whether without what is at `steps` the wanted place would be gone, or a part of its given value. */
  #isKept(steps: Steps): boolean {
    return restOf(this.#wanted, steps) !== undefined || isGiven(this.#wanted, steps);
  }
}

/** @param name "kind", or "workload.kind" for a field of a field */
function isField(parent: Site | undefined, name: string): boolean {
  const steps = name.split(".");
  return steps.every((step, at) => {
    const site = parent === undefined ? undefined : siteAt(generator, parent, steps.slice(0, at));
    return site?.schema.properties?.[step] !== undefined;
  });
}

/** What is left of the wanted steps below `steps`; undefined when they lead elsewhere. */
function restOf(wanted: Wanted | undefined, steps: Steps): Steps | undefined {
  if (wanted === undefined || !leads(steps, wanted.steps)) return undefined;
  return wanted.steps.slice(steps.length);
}

/** Whether `steps` lead into a value that was given. */
function isGiven(wanted: Wanted | undefined, steps: Steps): boolean {
  if (wanted?.value === undefined || steps.length <= wanted.steps.length) return false;
  return leads(steps.slice(0, wanted.steps.length), wanted.steps);
}

/** "*" of the wanted steps is the first item, or whatever key a map has. */
function leads(steps: Steps, wanted: Steps): boolean {
  if (steps.length > wanted.length) return false;
  return steps.every(
    (step, at) => wanted[at] === step || (wanted[at] === "*" && (step === "0" || !/^\d+$/.test(step))),
  );
}
