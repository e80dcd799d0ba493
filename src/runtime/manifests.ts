/**
 * Manifests without a cluster: the directory source with the validation of API server and webhook, and the class whose
 * Gateways are served. `gwproxy up` and `gwproxy validate` use it.
 */
import { applyDefaults } from "../../generated/defaults.ts";
import { validate } from "../admission/validate.ts";
import type { Logger } from "../lib/log.ts";
import { createDirectorySource, type DirectorySource } from "../sources/directory/source.ts";
import type { TranslatorOptions } from "../translator/translator.ts";

/** Options of the translator for files, which need no GatewayClass object: the class `gwproxy` exists implicitly. */
export const FILE_TRANSLATION: { readonly controllerName: string; readonly implicitClass: string } = {
  controllerName: "gwproxy.dev/gwproxy",
  implicitClass: "gwproxy",
};

/** @param enableInference reads InferencePools too */
export function fileTranslation({ enableInference }: { readonly enableInference: boolean }): TranslatorOptions {
  return enableInference ? { ...FILE_TRANSLATION, inferencePools: "pods-and-slices" } : FILE_TRANSLATION;
}

/** @param paths files and folders */
export function createManifestSource(paths: readonly string[], log: Logger): DirectorySource {
  return createDirectorySource({ paths, validate, applyDefaults, log });
}
