/**
 * Derives what the deployer needs from the controller's options: the image of data planes, and the address at which they
 * reach the controller. `controller-core.ts` and `gwproxy render` use it.
 */
import type { DeployerSettings } from "../deployer/objects/context.ts";
import { VERSION } from "../lib/version.ts";
import type { DeploymentOptions } from "./options.ts";

/**
 * @param tls set when discovery is served over TLS; its `ca` is undefined when the system's CA certificates verify the
 * server
 */
export function deployerSettings(
  options: DeploymentOptions,
  tls: { readonly ca: string | undefined } | undefined,
): DeployerSettings {
  const { proxyImageRegistry, proxyImageRepository, proxyImageTag, dummyPort } = options;
  const tag = proxyImageTag === "" ? VERSION : proxyImageTag;
  return {
    image: { registry: proxyImageRegistry, repository: proxyImageRepository, tag },
    imagePullSecrets: options.proxyImagePullSecrets,
    ambientIdentityHosts: options.ambientIdentityHosts,
    className: options.className,
    mesh: meshSettings(options),
    version: VERSION,
    xdsAddress: `${tls === undefined ? "http" : "https"}://${authority(xdsHost(options))}:${options.xdsServicePort}`,
    xdsCa: tls?.ca,
    noListenersPort: dummyPort,
  };
}

/** Fills in the defaults of the mesh: its control plane serves a revision under a name of its own. */
function meshSettings(options: DeploymentOptions): DeployerSettings["mesh"] {
  const { meshAutoEnabled, meshNamespace, meshRevision, meshCaAddress, meshClusterId, meshNetwork } = options;
  const service = meshRevision === "" || meshRevision === "default" ? "istiod" : `istiod-${meshRevision}`;
  return {
    autoEnabled: meshAutoEnabled,
    caAddress: meshCaAddress === "" ? `https://${service}.${meshNamespace}.svc:15012` : meshCaAddress,
    clusterId: meshClusterId === "" ? "Kubernetes" : meshClusterId,
    network: meshNetwork,
  };
}

/** Returns the host at which data planes in the cluster reach discovery. */
function xdsHost({ xdsServiceHost, xdsServiceName, namespace }: DeploymentOptions): string {
  return xdsServiceHost === "" ? `${xdsServiceName}.${namespace}.svc` : xdsServiceHost;
}

function authority(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
