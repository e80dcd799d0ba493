/** What the commands hand to the processes that they start: their flags, parsed and checked. */
import type { LogFormat } from "../telemetry/log-lines.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface DataPlaneOptions {
  readonly bindAddress: string;
  /** Addresses and ranges. */
  readonly trustedProxies: readonly string[];
  readonly adminAddress: Address;
  /** File with what requests to the admin server must show; unset: nothing. */
  readonly adminTokenFile: string | undefined;
  readonly metricsAddress: Address;
  readonly readinessAddress: Address;
  readonly logLevel: string;
  readonly logFormat: LogFormat;
  readonly workers: number;
  /** Seconds. */
  readonly threadTimeout: number;
  /** "unix:///path" or "tcp://address:port"; unset: there is no workload API. */
  readonly spiffeEndpointSocket: string | undefined;
  /** Seconds of proxying.md 14. */
  readonly drainMin: number | undefined;
  readonly drainMax: number | undefined;
  readonly gracePeriod: number | undefined;
}

export interface UpOptions extends DataPlaneOptions {
  readonly file: readonly string[];
  readonly output: "text" | "json";
}

export interface ProxyOptions extends DataPlaneOptions {
  /** "host:port", which takes TLS when a CA is named, or the same behind http:// or https://. */
  readonly xdsAddress: string;
  /** PEM file of the authorities that may sign the controller's certificate; unset or empty: those of the system. */
  readonly xdsCa: string | undefined;
  /** File with the service account's token, read again for every connection; unset: none is sent. */
  readonly xdsToken: string | undefined;
  readonly gateway: string;
  /** YAML file of settings; unset: none. */
  readonly config: string | undefined;
}

export interface WebhookOptions {
  readonly kubeconfig: string | undefined;
  readonly address: Address;
  readonly namespace: string;
  readonly service: string | undefined;
  readonly url: string | undefined;
  readonly logLevel: string;
}
