/**
 * Declares what is said of GwParameters, which have no effect in this version: `gwproxy up` and the controller print a
 * line for each. `graph.ts` uses it.
 */
import type { GwParameters } from "../../generated/types/parameters.ts";
import { objectId } from "../api/object.ts";
import type { Collection } from "../lib/collections/collection.ts";
import type { Graph, Input } from "../lib/collections/graph.ts";
import type { ObjectStatusInput } from "./shared/status-input.ts";

export function declareParameters(graph: Graph, parameters: Input<GwParameters>): Collection<ObjectStatusInput> {
  return graph.derive("parameters status inputs", parameters, (_key, object): ObjectStatusInput => {
    const id = objectId(object);
    const message = "this version of gwproxy deploys every Gateway in the same way, so parameters have no effect";
    return {
      kind: "GwParameters",
      id,
      generation: object.metadata.generation ?? 0,
      diagnostics: [{ code: "not_served", severity: "warning", object: id, path: "spec", message }],
    };
  });
}
