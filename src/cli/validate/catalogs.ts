/**
 * Reads the texts of model catalogs as data planes do: those of the ConfigMaps that a GwParameters names. A cluster stores
 * such a text whatever it says, and only the status of the Gateway would tell. `gwproxy validate` uses it.
 */
import type { GwParameters } from "../../../generated/types/parameters.ts";
import type { KubeObject } from "../../api/object.ts";
import { ConfigError } from "../../lib/errors.ts";
import { parseCatalogSource } from "../../proxy/llm/cost/catalog-source.ts";
import { type CheckedObject, type FileDiagnostic, titleOf } from "../../sources/directory/check.ts";
import type { ValidatedFiles } from "../../sources/directory/validate-files.ts";
import { DEFAULT_CATALOG_ENTRY } from "../../translator/gateways/model-catalog.ts";

export function validateCatalogs({ objects, accepted }: Omit<ValidatedFiles, "diagnostics">): FileDiagnostic[] {
  const inForce = new Set(accepted);
  const checked = objects.filter(({ object }) => inForce.has(object));
  const configMaps = new Map(
    checked
      .filter(({ id }) => id.group === "" && id.kind === "ConfigMap")
      .map((each) => [`${each.id.namespace}/${each.id.name}`, each]),
  );
  const found = new Map<string, FileDiagnostic>();
  for (const parameters of checked.filter(({ id }) => id.kind === "GwParameters")) {
    const { id, object } = parameters;
    // The object was accepted, so it has the shape of its schema.
    const { modelCatalog } = (object as KubeObject & Pick<GwParameters, "spec">).spec;
    for (const [at, { configMap }] of (modelCatalog?.sources ?? []).entries()) {
      const { name, key = DEFAULT_CATALOG_ENTRY } = configMap;
      const holder = configMaps.get(`${id.namespace}/${name}`);
      // What is not among the files is a matter of references.
      if (holder === undefined) continue;
      const text = (holder.object as { readonly data?: Readonly<Record<string, string>> }).data?.[key] ?? "";
      const path = `spec.modelCatalog.sources[${at}].configMap`;
      const fault =
        text === ""
          ? faultAt(parameters, path, `ConfigMap ${id.namespace}/${name} has no text in entry ${key}`, "add it")
          : faultOf(holder, key, text);
      // A text that several parameters name is reported once.
      if (fault !== undefined) found.set(`${fault.object} ${fault.path}`, fault);
    }
  }
  return [...found.values()];
}

/** @returns the first fault of a text; undefined when it is sound */
function faultOf(holder: CheckedObject, key: string, text: string): FileDiagnostic | undefined {
  try {
    parseCatalogSource(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [message = "", ...next] = error.message.split("; ");
    return faultAt(holder, `data["${key}"]`, `the model catalog cannot be read: ${message}`, next.join("; "));
  }
}

function faultAt(checked: CheckedObject, path: string, message: string, suggestion: string): FileDiagnostic {
  const { file, id, object, mark } = checked;
  const about = { object: titleOf(object), groupKind: `${id.group}/${id.kind}`, lost: undefined };
  return {
    file,
    ...mark(path, "value"),
    ...about,
    path,
    severity: "error",
    reason: "ModelCatalogInvalid",
    message,
    suggestion,
  };
}
