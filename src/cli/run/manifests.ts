/** The directory source with the validation that the API server and the webhook would apply. */
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../admission/validate.ts";
import type { Logger } from "../../lib/log.ts";
import { createDirectorySource, type DirectorySource } from "../../sources/directory/source.ts";

/** @param paths files and folders */
export function createManifestSource(paths: readonly string[], log: Logger): DirectorySource {
  return createDirectorySource({ paths, validate, applyDefaults, log });
}
