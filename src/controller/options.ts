/** Defines the options of `gwproxy controller`, parsed and checked. `src/cli/commands` produces them from the flags. */
import type { LabelSelector } from "../api/label-selector.ts";
import type { Address } from "../runtime/options.ts";

/** Options that decide how data planes are deployed; `gwproxy render` has them too. */
export interface DeploymentOptions {
  readonly className: string;
  /** The controller's own namespace, which holds the lease and fetched JWKS. */
  readonly namespace: string;
  readonly proxyImageRegistry: string;
  readonly proxyImageRepository: string;
  /** "" selects the version of this program. */
  readonly proxyImageTag: string;
  /** Names of the Secrets with which nodes pull the image, in the namespaces of the Gateways. */
  readonly proxyImagePullSecrets: readonly string[];
  /** Hosts that data planes may send ambient cloud credentials to, as they take them; "" leaves it to them. */
  readonly ambientIdentityHosts: string;
  /** Service port of a Gateway without listener ports; with 0 such a Gateway is not deployed. */
  readonly dummyPort: number;
  /** Name of the controller's Service, in the controller's own namespace. */
  readonly xdsServiceName: string;
  /** Overrides the address of the Service; "" when unset. */
  readonly xdsServiceHost: string;
  readonly xdsServicePort: number;
  /** Switches the mesh on for Gateways of the controller's own class, unless their parameters switch it off. */
  readonly meshAutoEnabled: boolean;
  readonly meshNamespace: string;
  readonly meshRevision: string;
  /** These three are defaults for the parameters of Gateways; "" when unset. */
  readonly meshCaAddress: string;
  readonly meshClusterId: string;
  readonly meshNetwork: string;
}

export interface ClassParametersRef {
  readonly name: string;
  readonly namespace: string;
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
  readonly adminAddress: Address;
  /** File with the token of the admin server; undefined when it needs none. */
  readonly adminTokenFile: string | undefined;
  readonly controllerName: string;
  /** Creates the controller's GatewayClass; without it only one that exists is corrected. */
  readonly createGatewayClass: boolean;
  /** Deployment of the controller, which owns what the controller makes for itself; undefined when it has none. */
  readonly deploymentName: string | undefined;
  /** GwParameters by the name of the class that refers to them. */
  readonly gatewayClassParametersRefs: Readonly<Record<string, ClassParametersRef>>;
  /** Namespaces that are read; an empty list selects all of them. */
  readonly discoveryNamespaceSelectors: readonly LabelSelector[];
  readonly backendRefGrantMode: "route-and-policy" | "route" | "none";
  readonly allowLocalBackends: boolean;
  /** Reads and serves InferencePools. */
  readonly enableInference: boolean;
  /** Serves GwModels; without it they are not read. */
  readonly enableModels: boolean;
  /** Writes without leader election. */
  readonly disableLeaderElection: boolean;
  readonly logLevel: string;
}
