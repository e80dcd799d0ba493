/**
 * Renders the ServiceAccount of a data plane. Its token is not mounted by default: the Deployment mounts one whose
 * audience is the controller.
 */
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";

export function renderAccount(context: RenderContext): Manifest {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: objectMeta(context),
    automountServiceAccountToken: false,
  };
}
