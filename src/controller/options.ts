/** Defines the options of `gwproxy controller`, parsed and checked. `src/cli/commands` produces them from the flags. */
import type { LabelSelector } from "../api/label-selector.ts";
import type { Address } from "../runtime/options.ts";

interface DeploymentOptions {
  readonly proxyImageRegistry: string;
  readonly proxyImageRepository: string;
  /** "" selects the version of this program. */
  readonly proxyImageTag: string;
  /** Service port of a Gateway without listener ports; with 0 such a Gateway is not deployed. */
  readonly dummyPort: number;
  /** Name of the controller's Service, in the controller's own namespace. */
  readonly xdsServiceName: string;
  /** Overrides the address of the Service; "" when unset. */
  readonly xdsServiceHost: string;
  readonly xdsServicePort: number;
}

export interface ControllerOptions extends DeploymentOptions {
  readonly kubeconfig: string | undefined;
  readonly xdsAddress: Address;
  /**
   * undefined selects TLS with the named files or with the Secret, or plaintext when the address is loopback and no
   * files are named.
   */
  readonly xdsMode: "plaintext" | "tls" | "either" | undefined;
  /** Names in the certificate besides those of the Service. */
  readonly xdsTlsHosts: readonly string[];
  /** PEM files, both or neither. Without them the Secret gwproxy-xds-cert is used, unless the mode is plaintext. */
  readonly xdsTlsCert: string | undefined;
  readonly xdsTlsKey: string | undefined;
  /** Requires a token from data planes; undefined requires one unless the xDS address is loopback. */
  readonly xdsAuth: boolean | undefined;
  readonly healthAddress: Address;
  readonly metricsAddress: Address;
  readonly controllerName: string;
  readonly className: string;
  /** Namespaces that are read; an empty list selects all of them. */
  readonly discoveryNamespaceSelectors: readonly LabelSelector[];
  readonly backendRefGrantMode: "route-and-policy" | "route" | "none";
  readonly allowLocalBackends: boolean;
  /** The controller's own namespace, which holds the lease and fetched JWKS. */
  readonly namespace: string;
  /** Writes without leader election. */
  readonly disableLeaderElection: boolean;
  readonly logLevel: string;
}
