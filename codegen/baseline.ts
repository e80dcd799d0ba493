/** The committed baseline of the CRDs: what comes is added to it by itself, what goes only on demand. */
import { existsSync, readFileSync } from "node:fs";
import { breaks, parseBaseline, printBaseline, type Roots } from "./compatibility.ts";
import { expand } from "./expand.ts";
import { createGraph } from "./graph.ts";
import { loadSchemas, type Source } from "./load.ts";

export const BASELINE = "generated/crd-baseline.jsonl";

/** @param root the repository, with a slash at the end */
export function baselineBreaks(root: string): string[] {
  const old = readBaseline(root);
  return old === undefined ? [] : breaks(parseBaseline(old), rootsOf(loadSchemas(`${root}crds/schemas/`)));
}

/** The baseline with all that is new; the old one while something in it is broken. */
export function nextBaseline(root: string, source: Source): string {
  const old = readBaseline(root);
  const roots = rootsOf(source);
  const isBroken = old !== undefined && breaks(parseBaseline(old), roots).length > 0;
  return isBroken ? old : printBaseline(roots);
}

/** The baseline of the schemas as they are, whatever it breaks. */
export function newBaseline(root: string): string {
  return printBaseline(rootsOf(loadSchemas(`${root}crds/schemas/`)));
}

function rootsOf({ components, kinds }: Source): Roots {
  const graph = createGraph(components);
  return new Map(
    kinds.kinds.map(({ kind, component }) => {
      // What a status may hold is between us and ourselves.
      const { status: _, ...properties } = graph.get(component).schema.properties ?? {};
      return [kind, expand(graph, { type: "object", properties })];
    }),
  );
}

function readBaseline(root: string): string | undefined {
  return existsSync(root + BASELINE) ? readFileSync(root + BASELINE, "utf8") : undefined;
}
