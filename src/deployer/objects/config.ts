/**
 * Renders the ConfigMaps of a data plane: its own settings, and the CA certificates that it trusts for the controller.
 * The configuration of the Gateway itself arrives over xDS.
 */
import { stringify } from "yaml";
import { readSettings, type DataPlaneSettings } from "../../api/data-plane-settings.ts";
import { isRecord } from "../../lib/is-record.ts";
import type { DeploymentParameters } from "../../translator/parameters/merge.ts";
import { objectMeta, type Manifest, type RenderContext } from "./context.ts";
import { spiffeSocket } from "./spiffe.ts";

export function renderConfig(context: RenderContext): Manifest {
  return configMap(context, "", { "config.yaml": configText(context.plan.parameters) });
}

/** Returns the content of config.yaml: `rawConfig`, with the fields that the parameters set in a typed form over it. */
export function configText(parameters: DeploymentParameters): string {
  const { rawConfig = {}, logging, shutdown } = parameters;
  const socket = spiffeSocket(parameters);
  const typed = {
    ...(logging?.format === undefined ? {} : { logging: { format: logging.format } }),
    ...(socket === undefined ? {} : { spiffe: { endpoint: `unix://${socket}` } }),
    ...(shutdown === undefined ? {} : { drain: shutdown }),
  };
  return stringify({ config: mergeMaps(isRecord(rawConfig["config"]) ? rawConfig["config"] : {}, typed) });
}

/** Returns the settings that `rawConfig` makes; the pod itself depends on some of them. */
export function rawSettings({ rawConfig = {} }: DeploymentParameters): Partial<DataPlaneSettings> {
  return readSettings(rawConfig).settings;
}

function mergeMaps(base: Readonly<Record<string, unknown>>, over: Readonly<Record<string, unknown>>): object {
  const merged = Object.entries(over).map(([name, value]) => {
    const below = base[name];
    return [name, isRecord(below) && isRecord(value) ? mergeMaps(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(merged) };
}

/** @returns undefined when the controller is reached without TLS */
export function renderXdsCa(context: RenderContext): Manifest | undefined {
  const { xdsCa } = context.settings;
  return xdsCa === undefined ? undefined : configMap(context, "-xds-ca", { "ca.crt": xdsCa });
}

function configMap(context: RenderContext, suffix: string, data: Readonly<Record<string, string>>): Manifest {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: objectMeta(context, suffix), data };
}
