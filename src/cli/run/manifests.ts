/** The directory source with the validation that the API server and the webhook would apply. */
import { applyDefaults } from "../../../generated/defaults.ts";
import { validate } from "../../admission/validate.ts";
import type { Logger } from "../../lib/log.ts";
import { createDirectorySource, type DirectorySource } from "../../sources/directory/source.ts";

/** What files have to pass before they count: the same functions as in the webhook. */
export interface ManifestChecks {
  readonly validate: typeof validate;
  readonly applyDefaults: typeof applyDefaults;
}

export function createManifestChecks(): ManifestChecks {
  return { validate, applyDefaults };
}

/** @param paths files and folders */
export function createManifestSource(paths: readonly string[], log: Logger): DirectorySource {
  return createDirectorySource({ paths, ...createManifestChecks(), log });
}
