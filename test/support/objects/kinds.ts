/** The kinds that objects are made of, and what admission says about an object of one of them. */
import { createGraph } from "../../../codegen/graph.ts";
import { loadSchemas } from "../../../codegen/load.ts";
import { applyDefaults } from "../../../generated/defaults.ts";
import { validators } from "../../../generated/validators/index.js";
import { validate } from "../../../src/admission/validate.ts";
import type { Violation } from "../../../src/admission/violation.ts";
import { createGenerator, type Generator, type Site } from "./generate.ts";

const source = loadSchemas(new URL("../../../crds/schemas/", import.meta.url).pathname);
const graph = createGraph(source.components);

export const generator: Generator = createGenerator(graph);

export interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly groupKind: string;
  /** What stands under `spec`. */
  readonly spec: Site;
}

export const KINDS: readonly Kind[] = source.kinds.kinds.map(({ kind, plural, component }) => {
  const spec = generator.below(generator.root(component)).get("spec");
  if (spec === undefined) throw new Error(`${kind} has no spec`);
  return { kind, plural, groupKind: `${source.kinds.group}/${kind}`, spec };
});

export function objectOf({ kind }: Kind, spec: unknown): object {
  const { group, version } = source.kinds;
  return { apiVersion: `${group}/${version}`, kind, metadata: { name: "x", namespace: "default" }, spec };
}

/** What admission refuses about the object, after the defaults that the API server would give it. */
export function faultsOf(kind: Kind, object: object): Violation[] {
  return validate(applyDefaults(kind.groupKind, object)).filter(({ severity }) => severity === "error");
}

export function hasShape(kind: Kind, object: object): boolean {
  return validators[kind.groupKind]?.(applyDefaults(kind.groupKind, object)).length === 0;
}
