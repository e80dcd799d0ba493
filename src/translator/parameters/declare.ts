/**
 * Declares the diagnostics of GwParameters. They have no status, so `gwproxy validate`, `gwproxy up` and the controller
 * print a line for each; the Gateways that use them say the same in their status. `../graph.ts` uses it.
 */
import type { GwParameters } from "../../../generated/types/parameters.ts";
import { objectId } from "../../api/object.ts";
import type { Collection } from "../../lib/collections/collection.ts";
import type { Graph, Input } from "../../lib/collections/graph.ts";
import type { ObjectStatusInput } from "../shared/status-input.ts";
import { findParametersErrors } from "./check.ts";

export function declareParameters(graph: Graph, parameters: Input<GwParameters>): Collection<ObjectStatusInput> {
  return graph.derive("parameters status inputs", parameters, (_key, object): ObjectStatusInput => {
    const id = objectId(object);
    return {
      kind: "GwParameters",
      id,
      generation: object.metadata.generation ?? 0,
      diagnostics: findParametersErrors(object.spec).map(({ path, message }) => ({
        code: "invalid_parameters",
        severity: "error",
        object: id,
        path,
        message,
      })),
    };
  });
}
