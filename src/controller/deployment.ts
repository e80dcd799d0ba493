/** What the controller's options say of data planes: their image, and how they reach the controller. */
import type { ControllerOptions } from "./options.ts";
import type { DeployerSettings } from "../deployer/context.ts";
import { VERSION } from "../lib/version.ts";

/** @param tls set where discovery is served over TLS: the PEM that vouches for it, or undefined for authorities of the system */
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

/** Where data planes of the cluster find discovery. */
function xdsHost({ xdsServiceHost, xdsServiceName, namespace }: ControllerOptions): string {
  return xdsServiceHost === "" ? `${xdsServiceName}.${namespace}.svc` : xdsServiceHost;
}

function authority(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
