/**
 * Renders the ConfigMaps of a data plane: its own settings, and the CA certificates that it trusts for the controller.
 */
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";

/** Content of config.yaml. It sets nothing, because all configuration of a Gateway arrives over xDS. */
export const CONFIG_TEXT = "config: {}\n";

export function renderConfig(context: RenderContext): Manifest {
  return configMap(context, "", { "config.yaml": CONFIG_TEXT });
}

/** @returns undefined when the controller is reached without TLS */
export function renderXdsCa(context: RenderContext): Manifest | undefined {
  const { xdsCa } = context.settings;
  return xdsCa === undefined ? undefined : configMap(context, "-xds-ca", { "ca.crt": xdsCa });
}

function configMap(context: RenderContext, suffix: string, data: Readonly<Record<string, string>>): Manifest {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: objectMeta(context, suffix), data };
}
