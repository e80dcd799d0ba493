/**
 * Looks up the CEL phase of an expression field. The schema assigns a phase to each such field, and the phase decides
 * which variables the expression may read. Unit and backend translators use it to check expressions.
 */
import { EXPRESSIONS } from "../../../../generated/expressions.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";

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

/**
 * Builds the pattern of a path, in which "*" stands for a list item, "[0]", or for a map entry, whose name may hold any
 * character.
 */
function patternOf(path: readonly string[]): RegExp {
  const parts = path.map((name) => (name === "*" ? String.raw`(?:\[\d+\]|\..*)` : String.raw`\.${name}`));
  return new RegExp(`^${parts.join("")}$`, "su");
}

/**
 * @param path relative to `spec.traffic`, as in diagnostics
 * @throws Error when the schema has no expression at the path, that is, when translator and schema disagree
 */
export function phaseOfTraffic(path: string): CelPhase {
  return placeIn(TRAFFIC, path);
}

/**
 * @param path relative to the backend block, which has the same fields wherever it is used
 * @throws Error when the schema has no expression at the path
 */
export function phaseOfBackend(path: string): CelPhase {
  return placeIn(BACKEND, path);
}

/**
 * @param path relative to `spec.frontend`
 * @throws Error when the schema has no expression at the path
 */
export function phaseOfFrontend(path: string): CelPhase {
  return placeIn(FRONTEND, path);
}

function placeIn(patterns: readonly Pattern[], path: string): CelPhase {
  const found = patterns.find((pattern) => pattern.path.test(`.${path}`));
  if (found === undefined) throw new Error(`${path} is no expression in the schema`);
  return found.place;
}
