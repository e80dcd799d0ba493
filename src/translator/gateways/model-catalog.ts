/**
 * Translates the model catalog of a Gateway: the sources that its GwParameters name (`spec.modelCatalog`, found through
 * `infrastructure.parametersRef`), as one resource each. `../graph.ts` uses it. Data planes parse the texts, so that the
 * last good version of a source stays in force there; a source that cannot be read is sent without a text and is
 * refused in the same way.
 */
import { create } from "@bufbuild/protobuf";
import type { Gateway } from "../../../generated/types/gateway-api/gateway.ts";
import type { GwParameters, GwParametersSpec } from "../../../generated/types/parameters.ts";
import { ModelCatalogSourceSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId } from "../../api/object.ts";
import { GWPROXY_GROUP } from "../../api/refs.ts";
import { resourceOf } from "../../ir/encode.ts";
import { gatewayKey, modelCatalogKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Collection, Readable } from "../../lib/collections/collection.ts";
import type { Graph, Input, Read } from "../../lib/collections/graph.ts";
import type { ScopedResource } from "../shared/resource-store.ts";
import { declareScopedResources, scopeTo } from "../shared/scoped-resources.ts";
import type { CatalogSourceView } from "../shared/views.ts";
import { irRef } from "../references/refs.ts";
import { SecretReader, type SecretCollections } from "../references/secrets.ts";

interface TranslatedCatalog {
  readonly sources: readonly CatalogSourceView[];
  readonly resources: readonly Resource[];
}

interface CatalogInputs {
  readonly gateways: Input<Gateway>;
  readonly parameters: Readable<GwParameters>;
  readonly secrets: SecretCollections;
  /** Views of the Gateways that belong to this controller. */
  readonly views: Readable<unknown>;
}

/** @returns the sources of each Gateway for its status, and the resources for its data planes */
export function declareModelCatalogs(
  graph: Graph,
  inputs: CatalogInputs,
): { readonly catalogs: Readable<TranslatedCatalog>; readonly scopedResources: Collection<readonly ScopedResource[]> } {
  const catalogs = graph.derive("model catalogs", inputs.gateways, (key, gateway, read) =>
    read.get(inputs.views, key) === undefined ? undefined : translateModelCatalog(gateway, inputs, read),
  );
  const scopedResources = declareScopedResources(graph, "resources of model catalogs", catalogs, (key, { resources }) =>
    scopeTo([key], resources),
  );
  return { catalogs, scopedResources };
}

interface SourceRef {
  readonly name: string;
  readonly entry: string;
}

/** The entry of a ConfigMap where a source names none. */
export const DEFAULT_CATALOG_ENTRY = "catalog.json";

/** @returns undefined for a Gateway without a catalog */
function translateModelCatalog(
  gateway: Gateway,
  { parameters, secrets }: Pick<CatalogInputs, "parameters" | "secrets">,
  read: Read,
): TranslatedCatalog | undefined {
  const id = objectId(gateway);
  const { group, kind, name = "" } = gateway.spec.infrastructure?.parametersRef ?? {};
  if (group !== GWPROXY_GROUP || kind !== "GwParameters") return undefined;
  const found = read.get(parameters, `${id.namespace}/${name}`);
  const refs = found === undefined ? [] : readCatalogSources(found.spec);
  if (refs.length === 0) return undefined;
  const reader = new SecretReader(secrets, read, id.namespace);
  const byKey = new Map<string, { view: CatalogSourceView; resource: Resource }>();
  for (const [at, { name: configMap, entry }] of refs.entries()) {
    const key = modelCatalogKey(gatewayKey(id.namespace, id.name), configMap, entry);
    const { text = "", error } = textOf(reader.configMap(configMap), `${id.namespace}/${configMap}`, entry);
    const message = create(ModelCatalogSourceSchema, {
      key,
      gateway: irRef(id),
      position: at,
      text,
      invalidReason: error ?? "",
    });
    const view = { key, name: `${configMap}/${entry}`, error };
    // Of a source that is named twice the later place counts.
    byKey.set(key, { view, resource: resourceOf("ModelCatalogSource", message) });
  }
  const all = [...byKey.values()];
  return { sources: all.map(({ view }) => view), resources: all.map(({ resource }) => resource) };
}

/** Returns the sources that parameters name, in their order. */
function readCatalogSources({ modelCatalog }: GwParametersSpec): SourceRef[] {
  const { sources = [] } = modelCatalog ?? {};
  return sources.map(({ configMap: { name, key = DEFAULT_CATALOG_ENTRY } }) => ({ name, entry: key }));
}

function textOf(
  entries: ReturnType<SecretReader["configMap"]>,
  name: string,
  entry: string,
): { readonly text?: string; readonly error?: string } {
  if (typeof entries === "string") return { error: `${entries}; create it, or remove the source` };
  const text = entries.get(entry) ?? "";
  return text === "" ? { error: `ConfigMap ${name} has no text in entry ${entry}; add it` } : { text };
}
