/**
 * Derives the deployer's settings from the controller's options: the image of data planes, and the address at which
 * they reach the controller. `controller-core.ts` uses it.
 */
import type { ControllerOptions } from "./options.ts";
import type { DeployerSettings } from "../deployer/objects/context.ts";
import { VERSION } from "../lib/version.ts";

/**
 * @param tls set when discovery is served over TLS; its `ca` is undefined when the system's CA certificates verify the
 * server
 */
export function deployerSettings(
  options: ControllerOptions,
  tls: { readonly ca: string | undefined } | undefined,
): DeployerSettings {
  const { proxyImageRegistry, proxyImageRepository, proxyImageTag, dummyPort } = options;
  const registry = proxyImageRegistry === "" ? "" : `${proxyImageRegistry}/`;
  return {
    image: `${registry}${proxyImageRepository}:${proxyImageTag === "" ? VERSION : proxyImageTag}`,
    version: VERSION,
    xdsAddress: `${tls === undefined ? "http" : "https"}://${authority(xdsHost(options))}:${options.xdsServicePort}`,
    xdsCa: tls?.ca,
    noListenersPort: dummyPort,
  };
}

/** Returns the host at which data planes in the cluster reach discovery. */
function xdsHost({ xdsServiceHost, xdsServiceName, namespace }: ControllerOptions): string {
  return xdsServiceHost === "" ? `${xdsServiceName}.${namespace}.svc` : xdsServiceHost;
}

function authority(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
