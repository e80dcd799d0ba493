/** What `gwproxy controller` is started with: its flags, parsed and checked. */
import type { LabelSelector } from "../api/label-selector.ts";
import type { Address } from "../runtime/options.ts";

interface DeploymentOptions {
  readonly proxyImageRegistry: string;
  readonly proxyImageRepository: string;
  /** "": the version of this program. */
  readonly proxyImageTag: string;
  /** 0: none. */
  readonly dummyPort: number;
  /** The Service of the controller, in its own namespace. */
  readonly xdsServiceName: string;
  /** Wins over the Service; "": unset. */
  readonly xdsServiceHost: string;
  readonly xdsServicePort: number;
}

export interface ControllerOptions extends DeploymentOptions {
  readonly kubeconfig: string | undefined;
  readonly xdsAddress: Address;
  /** undefined: TLS, by the files that are named or by the Secret; plaintext on loopback where no files are named. */
  readonly xdsMode: "plaintext" | "tls" | "either" | undefined;
  /** Names in the certificate beside those of the Service. */
  readonly xdsTlsHosts: readonly string[];
  /** PEM files; both or none. None: the Secret gwproxy-xds-cert, where the mode is not plaintext. */
  readonly xdsTlsCert: string | undefined;
  readonly xdsTlsKey: string | undefined;
  /** Whether a data plane must show a token; undefined: unless xDS stays on this machine. */
  readonly xdsAuth: boolean | undefined;
  readonly healthAddress: Address;
  readonly metricsAddress: Address;
  readonly controllerName: string;
  readonly className: string;
  /** Namespaces that count; none: all of them. */
  readonly discoveryNamespaceSelectors: readonly LabelSelector[];
  readonly backendRefGrantMode: "route-and-policy" | "route" | "none";
  readonly allowLocalBackends: boolean;
  /** Its own: where the lease and fetched key sets are kept. */
  readonly namespace: string;
  /** Write without asking other replicas. */
  readonly disableLeaderElection: boolean;
  readonly logLevel: string;
}
