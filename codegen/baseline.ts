/**
 * The committed baseline of the CRDs, against which `make generate` tests compatibility. Additions are merged into it
 * automatically; removals need `make baseline`.
 */
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

/** Returns the baseline with all additions; the old one while the schemas break any part of it. */
export function nextBaseline(root: string, source: Source): string {
  const old = readBaseline(root);
  const roots = rootsOf(source);
  const isBroken = old !== undefined && breaks(parseBaseline(old), roots).length > 0;
  return isBroken ? old : printBaseline(roots);
}

/** Returns the baseline of the current schemas, including what they break. */
export function newBaseline(root: string): string {
  return printBaseline(rootsOf(loadSchemas(`${root}crds/schemas/`)));
}

function rootsOf({ components, kinds }: Source): Roots {
  const graph = createGraph(components);
  return new Map(
    kinds.kinds.map(({ kind, component }) => {
      // Leave status out: only our own controller writes it.
      const { status: _, ...properties } = graph.get(component).schema.properties ?? {};
      return [kind, expand(graph, { type: "object", properties })];
    }),
  );
}

function readBaseline(root: string): string | undefined {
  return existsSync(root + BASELINE) ? readFileSync(root + BASELINE, "utf8") : undefined;
}
