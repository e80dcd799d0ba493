/**
 * Renders a deployment plan into the Kubernetes objects of a data plane, in the order in which they are applied: pods
 * come after everything they need. `deployer.ts` uses it. Rendering is pure: equal plans and settings give equal
 * objects.
 */
import { hash } from "node:crypto";
import type { Manifest, RenderContext } from "./objects/context.ts";
import { renderAccount } from "./objects/account.ts";
import { renderConfig, renderXdsCa } from "./objects/config.ts";
import { renderDeployment } from "./objects/deployment.ts";
import { renderService } from "./objects/service.ts";
import { renderSessionKey } from "./objects/session-key.ts";

/**
 * Annotation with a digest of the rendered object. An observed object with the right digest was applied in this very
 * form, so a restart applies nothing, and a field that is no longer rendered is noticed.
 */
export const DIGEST_ANNOTATION = "gwproxy.dev/rendered";

/** Number of hexadecimal digits of a digest. It distinguishes versions and is not a security measure. */
const DIGEST_LENGTH = 16;

export function render(context: RenderContext): Manifest[] {
  const ca = renderXdsCa(context);
  return [
    renderAccount(context),
    renderConfig(context),
    ...(ca === undefined ? [] : [ca]),
    renderSessionKey(context),
    renderService(context),
    renderDeployment(context),
  ].map(withDigest);
}

function withDigest(manifest: Manifest): Manifest {
  const digest = hash("sha256", JSON.stringify(manifest)).slice(0, DIGEST_LENGTH);
  const { metadata } = manifest;
  return {
    ...manifest,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [DIGEST_ANNOTATION]: digest } },
  };
}
