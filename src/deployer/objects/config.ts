/** What the data plane reads from files: its own settings, and the authorities that vouch for the controller. */
import { objectMeta, type Manifest, type RenderContext } from "../context.ts";

/** The content of config.yaml. Nothing has to be set: what a Gateway says arrives over discovery. */
export const CONFIG_TEXT = "config: {}\n";

export function renderConfig(context: RenderContext): Manifest {
  return configMap(context, "", { "config.yaml": CONFIG_TEXT });
}

/** @returns undefined where the controller is reached without TLS */
export function renderXdsCa(context: RenderContext): Manifest | undefined {
  const { xdsCa } = context.settings;
  return xdsCa === undefined ? undefined : configMap(context, "-xds-ca", { "ca.crt": xdsCa });
}

function configMap(context: RenderContext, suffix: string, data: Readonly<Record<string, string>>): Manifest {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: objectMeta(context, suffix), data };
}
