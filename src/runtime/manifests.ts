/** Manifests without a cluster: the source with the validation of the API server and the webhook, and whose Gateways are ours. */
import { applyDefaults } from "../../generated/defaults.ts";
import { validate } from "../admission/validate.ts";
import type { Logger } from "../lib/log.ts";
import { createDirectorySource, type DirectorySource } from "../sources/directory/source.ts";

/** Files need no GatewayClass object: the class `gwproxy` is there. `up` and `validate` translate with it. */
export const FILE_TRANSLATION: { readonly controllerName: string; readonly implicitClass: string } = {
  controllerName: "gwproxy.dev/gwproxy",
  implicitClass: "gwproxy",
};

/** @param paths files and folders */
export function createManifestSource(paths: readonly string[], log: Logger): DirectorySource {
  return createDirectorySource({ paths, validate, applyDefaults, log });
}
