/** Who the data plane is. Its token is mounted where it is needed, for the controller alone. */
import { objectMeta, type Manifest, type RenderContext } from "../context.ts";

export function renderAccount(context: RenderContext): Manifest {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: objectMeta(context),
    automountServiceAccountToken: false,
  };
}
