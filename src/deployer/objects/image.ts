/** Composes the reference of a data plane's image from the parameters and the controller's settings. */
import type { Image } from "../../../generated/types/parameters.ts";

/** Parts of an image reference; all of them may be empty but the repository. */
export interface ImageSettings {
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

/** Returns a reference such as "ghcr.io/gwproxy/proxy:1.2.3@sha256:…". */
export function imageReference(image: Image = {}, settings: ImageSettings): string {
  const { registry = settings.registry, repository = settings.repository, tag = settings.tag, digest } = image;
  const prefix = registry === "" ? "" : `${registry}/`;
  return `${prefix}${repository}${tag === "" ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`;
}
