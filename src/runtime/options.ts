/** The options that commands hand to the processes that they start: their flags, parsed and checked. */
import type { LogFormat } from "../telemetry/log-lines.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface DataPlaneOptions {
  readonly bindAddress: string;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  readonly adminAddress: Address;
  /** File with the token that requests to the admin server must show; unset when they need none. */
  readonly adminTokenFile: string | undefined;
  readonly metricsAddress: Address;
  readonly readinessAddress: Address;
  readonly logLevel: string;
  readonly logFormat: LogFormat;
  readonly workers: number;
  /** Time in seconds. */
  readonly threadTimeout: number;
  /** Address of the SPIFFE workload API, "unix:///path" or "tcp://address:port"; unset when there is none. */
  readonly spiffeEndpointSocket: string | undefined;
  /** Comma list of keys that seal MCP sessions; unset for a random one. */
  readonly sessionKey: string | undefined;
  /** The drain times in seconds (shutdown.ts). */
  readonly drainMin: number | undefined;
  readonly drainMax: number | undefined;
  readonly gracePeriod: number | undefined;
}

export interface UpOptions extends DataPlaneOptions {
  readonly file: readonly string[];
  readonly output: "text" | "json";
  /** Serves InferencePools. */
  readonly enableInference: boolean;
}

export interface ProxyOptions extends DataPlaneOptions {
  /** Address "host:port", which uses TLS when a CA is named, or the same with http:// or https:// in front. */
  readonly xdsAddress: string;
  /** PEM file of the authorities that may sign the controller's certificate; unset or empty for those of the system. */
  readonly xdsCa: string | undefined;
  /** File with the service account token, read again for every connection; unset when no token is sent. */
  readonly xdsToken: string | undefined;
  readonly gateway: string;
}

export interface WebhookOptions {
  readonly kubeconfig: string | undefined;
  readonly address: Address;
  readonly namespace: string;
  readonly service: string | undefined;
  readonly url: string | undefined;
  /** ValidatingWebhookConfiguration that a chart renders; undefined when the webhook applies one of its own. */
  readonly configuration: string | undefined;
  /** Deployment of the webhook, which owns its certificates; undefined when it has none. */
  readonly deploymentName: string | undefined;
  readonly logLevel: string;
}
