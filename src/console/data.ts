/**
 * The answer of `/console/data`: what the page of the admin server shows besides `/explain` and `/debug/trace`.
 * src/runtime/console-data.ts writes it, and the page in this folder reads it. Every list is bounded by its writer.
 */

export interface ConsoleData {
  readonly process: ProcessData;
  readonly configuration: ConfigurationData;
  /** The newest refused resources, each of which keeps its former state. */
  readonly refused: readonly RefusedResource[];
  readonly traffic: TrafficData;
  readonly backends: BackendList;
  readonly usage: UsageList;
}

export interface ProcessData {
  readonly version: string;
  readonly node: string;
  /** RFC 3339. */
  readonly startedAt: string;
  /** RFC 3339, by the clock of the process, so that ages do not depend on the clock of the browser. */
  readonly now: string;
  /** Names of the steps that readiness waits for; ready when empty. */
  readonly pending: readonly string[];
  /** "files" for `gwproxy up`, "controller" for `gwproxy proxy`. */
  readonly source: "files" | "controller";
  /** Whether the configuration of the source is followed at this moment. */
  readonly following: boolean;
  readonly threads: readonly ThreadData[];
  readonly threadRestarts: number;
  readonly residentBytes: number;
}

interface ThreadData {
  readonly name: string;
  readonly heapUsedBytes: number;
}

export interface ConfigurationData {
  /** Digest of the binds, listeners and routes; changes exactly when one of them does. */
  readonly revision: string;
  /** RFC 3339; null before the first update. */
  readonly appliedAt: string | null;
  /** Absent when the request named this revision as known. */
  readonly content?: ConfigurationContent;
}

export interface ConfigurationContent {
  readonly binds: readonly BindData[];
  readonly routes: readonly RouteData[];
}

export interface BindData {
  readonly key: string;
  /** "namespace/name". */
  readonly gateway: string;
  readonly port: number;
  /** null while no socket is open. */
  readonly openPort: number | null;
  readonly protocol: string;
  /** It has no socket: its connections come through another one. */
  readonly isInternal: boolean;
  readonly listeners: readonly ListenerData[];
}

export interface ListenerData {
  readonly key: string;
  readonly name: string;
  /** Empty for any host. */
  readonly hostname: string;
  readonly protocol: string;
  /** "namespace/name" of the ListenerSet that it comes from; null for the Gateway itself. */
  readonly listenerSet: string | null;
  readonly routes: number;
}

export interface RouteData {
  readonly key: string;
  readonly kind: string;
  /** "namespace/name". */
  readonly name: string;
  readonly hostnames: readonly string[];
  /** Keys of the listeners that accepted it. */
  readonly listeners: readonly string[];
  readonly rules: readonly RuleData[];
}

export interface RuleData {
  /** Name of the rule, or its position. */
  readonly rule: string;
  /** Texts such as "GET /shop/*"; a request needs one of them. */
  readonly matches: readonly string[];
  readonly backends: readonly string[];
  /** Why the rule, or a share of its requests, is answered with an error. */
  readonly problems: readonly string[];
}

interface RefusedResource {
  readonly type: string;
  readonly key: string;
  readonly reason: string;
  /** RFC 3339. */
  readonly at: string;
}

/** Requests since the start of the process. */
export interface TrafficData {
  readonly requests: number;
  /** Those that were answered with a status of 500 or above. */
  readonly failed: number;
}

/** Endpoints in trouble come first, then the busiest; the writer cuts the list at a bound. */
export interface BackendList {
  readonly endpoints: readonly EndpointData[];
  /** How many the filter finds, before the cut. */
  readonly found: number;
  /** How many there are, and are out of rotation, whatever the filter is. */
  readonly total: number;
  readonly ejected: number;
}

export interface EndpointData {
  readonly backend: string;
  /** Address and port, or the name of a provider. */
  readonly endpoint: string;
  /** From 0 to 1. */
  readonly health: number;
  readonly latencySeconds: number;
  readonly pendingRequests: number;
  readonly totalRequests: number;
  readonly failuresInARow: number;
  readonly timesEjected: number;
  /** RFC 3339; null while the endpoint is in rotation. */
  readonly ejectedUntil: string | null;
}

/** What LLM requests used since the start of the process, added up by the values of one label. */
export interface UsageList {
  readonly label: string;
  /** Labels that can be asked for, those of `frontend.metrics` last. */
  readonly labels: readonly string[];
  readonly rows: readonly UsageRow[];
  /** How many rows there are before the cut. */
  readonly total: number;
}

export interface UsageRow {
  readonly value: string;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens that the provider read from its cache, or wrote to it. */
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** null when the model catalog priced none of the requests. */
  readonly costUsd: number | null;
  /** Requests whose model or rate the catalog does not have. */
  readonly unpriced: number;
}
