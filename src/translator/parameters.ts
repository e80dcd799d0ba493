/**
 * Declares the diagnostics of GwParameters: in this version only their model catalog has an effect
 * (`gateways/model-catalog.ts`), so every other field is reported. They have no status, so `gwproxy up` and the
 * controller print a line for each diagnostic. `graph.ts` uses it.
 */
import type { GwParameters } from "../../generated/types/parameters.ts";
import { objectId } from "../api/object.ts";
import { GWPROXY_GROUP } from "../api/refs.ts";
import type { Collection } from "../lib/collections/collection.ts";
import type { Graph, Input } from "../lib/collections/graph.ts";
import { trackAccess } from "../lib/track-access.ts";
import { readCatalogSources } from "./gateways/model-catalog.ts";
import type { ObjectStatusInput } from "./shared/status-input.ts";
import { unsupportedFields } from "./shared/unsupported-fields.ts";

export function declareParameters(graph: Graph, parameters: Input<GwParameters>): Collection<ObjectStatusInput> {
  return graph.derive("parameters status inputs", parameters, (_key, object): ObjectStatusInput => {
    const id = objectId(object);
    const { view, unread } = trackAccess({ spec: object.spec });
    readCatalogSources(view.spec);
    const unsupported = unsupportedFields(`${GWPROXY_GROUP}/GwParameters`, unread(), []);
    return {
      kind: "GwParameters",
      id,
      generation: object.metadata.generation ?? 0,
      diagnostics: unsupported.map(({ path, message }) => ({
        code: "not_served",
        severity: "warning",
        object: id,
        path,
        message,
      })),
    };
  });
}
