/**
 * A placement → the Kubernetes objects of its data plane, in the order in which they are applied: what pods need comes
 * before the pods. Pure: the same placement and settings make the same objects.
 */
import { hash } from "node:crypto";
import type { Manifest, RenderContext } from "./context.ts";
import { renderAccount } from "./objects/account.ts";
import { renderConfig, renderXdsCa } from "./objects/config.ts";
import { renderDeployment } from "./objects/deployment.ts";
import { renderService } from "./objects/service.ts";
import { renderSessionKey } from "./objects/session-key.ts";

/**
 * Says what an object was rendered as. An object that bears the right digest was applied by us in this very form, so
 * that a restart applies nothing, and a field that is no longer rendered is noticed.
 */
export const DIGEST_ANNOTATION = "gwproxy.dev/rendered";

/** The first hexadecimal digits of a digest; it tells versions apart and protects nothing. */
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
