/** Where an expression of a GwPolicy stands: the schema of its field says so, and with it what it may read. */
import { EXPRESSIONS } from "../../../../generated/expressions.ts";
import type { CelPhase } from "../../../cel/phases.ts";

interface Pattern {
  readonly path: RegExp;
  readonly place: CelPhase;
}

const TRAFFIC = patternsOf("traffic");
const BACKEND = patternsOf("backend");
const FRONTEND = patternsOf("frontend");

function patternsOf(section: string): readonly Pattern[] {
  return (EXPRESSIONS["gwproxy.dev/GwPolicy"] ?? [])
    .filter(({ path }) => path[1] === section)
    .map(({ path, environment }) => ({ path: patternOf(path.slice(2)), place: environment }));
}

/** "*" is an item, "[0]", or an entry of a map, whose name may hold any character. */
function patternOf(path: readonly string[]): RegExp {
  const parts = path.map((name) => (name === "*" ? String.raw`(?:\[\d+\]|\..*)` : String.raw`\.${name}`));
  return new RegExp(`^${parts.join("")}$`, "su");
}

/**
 * @param path relative to `spec.traffic`, as problems are reported
 * @throws Error when no expression stands there: the translator and the schema disagree
 */
export function phaseOfTraffic(path: string): CelPhase {
  return placeIn(TRAFFIC, path);
}

/**
 * @param path relative to the backend block: the same block has the same places wherever it stands
 * @throws Error when no expression stands there
 */
export function phaseOfBackend(path: string): CelPhase {
  return placeIn(BACKEND, path);
}

/** @param path relative to `spec.frontend` @throws Error when no expression stands there */
export function phaseOfFrontend(path: string): CelPhase {
  return placeIn(FRONTEND, path);
}

function placeIn(patterns: readonly Pattern[], path: string): CelPhase {
  const found = patterns.find((pattern) => pattern.path.test(`.${path}`));
  if (found === undefined) throw new Error(`${path} is no expression in the schema`);
  return found.place;
}
