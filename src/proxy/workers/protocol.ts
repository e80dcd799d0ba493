/** What the main thread and its workers say to each other. Resources travel encoded; each worker compiles them for itself. */
import { decodeMessage, encodeMessage } from "../../ir/encode.ts";
import type { ApplyResult, Resource, ResourceType, ResourceUpdate } from "../../ir/resource.ts";
import type { LogFormat } from "../../telemetry/log-lines.ts";
import type { Counted, Readings } from "../../telemetry/registry.ts";
import type { Resource as Reporter } from "../../telemetry/otlp/resource.ts";
import type { ProxyLocality } from "../balancing/endpoints.ts";
import type { EndpointDump } from "../balancing/endpoint-dump.ts";
import type { OpenListener } from "../listeners/binds.ts";
import type { WorkloadApiDump } from "../spiffe/workload-api.ts";
import type { SharedBuffers } from "./shared-state.ts";

/** What a worker is born with. */
export interface WorkerSettings {
  /** Its number in the tables of shared memory. */
  readonly thread: number;
  readonly shared: SharedBuffers;
  readonly bindAddress: string;
  readonly podName: string | undefined;
  readonly trustedProxies: readonly string[];
  readonly whereabouts: ProxyLocality | undefined;
  readonly spiffeEndpoint: string | undefined;
  /** Memory of OwnListeners. */
  readonly ownListeners: SharedArrayBuffer | undefined;
  readonly version: string;
  readonly resource: Reporter;
  /** As printLogFilter prints it. */
  readonly logFilter: string;
  /** Of the access log. */
  readonly logFormat: LogFormat;
}

export interface EncodedUpdate {
  readonly set: readonly EncodedResource[];
  readonly removed: ResourceUpdate["removed"];
}

interface EncodedResource {
  readonly type: ResourceType;
  readonly key: string;
  readonly version: string;
  readonly bytes: Uint8Array;
}

/** What a worker can be asked. */
export interface WorkerProtocol {
  readonly apply: {
    readonly ask: EncodedUpdate;
    readonly answer: ApplyResult & { readonly listeners: readonly OpenListener[] };
  };
  /** What was counted since the last time. */
  readonly collect: { readonly ask: undefined; readonly answer: Collected };
  readonly logFilter: { readonly ask: string; readonly answer: undefined };
  readonly announce: { readonly ask: undefined; readonly answer: undefined };
  /** Stops accepting; answered when the last connection is gone. */
  readonly drain: { readonly ask: undefined; readonly answer: undefined };
  /** Cuts what is left off; answered when everything about it is handed over. */
  readonly end: { readonly ask: undefined; readonly answer: undefined };
}

export interface Collected {
  readonly counted: Counted;
  /** What the thread alone knows. */
  readonly readings: Readings;
  readonly endpoints: readonly EndpointDump[];
  readonly workloadIdentity: WorkloadApiDump | null;
}

/** What the main thread can be asked. */
export interface MainProtocol {
  /** A worker is ready to apply. */
  readonly ready: { readonly ask: undefined; readonly answer: undefined };
  /** The port to open for a Bind, together with the others. */
  readonly port: { readonly ask: { readonly bind: string; readonly port: number }; readonly answer: number };
  /** Whole lines for stderr; answered when there is room for more. */
  readonly lines: { readonly ask: string; readonly answer: undefined };
  /** The same of the access log. */
  readonly accessLines: { readonly ask: string; readonly answer: undefined };
  readonly counted: { readonly ask: Counted; readonly answer: undefined };
}

export function encodeUpdate(set: Iterable<Resource>, removed: ResourceUpdate["removed"]): EncodedUpdate {
  return { set: Array.from(set, encodeResource), removed };
}

/** @throws Error when bytes are no such message, which only a fault of this program can make them */
export function decodeUpdate({ set, removed }: EncodedUpdate): ResourceUpdate {
  return { set: set.map(decodeResource), removed };
}

function encodeResource({ type, key, version, message }: Resource): EncodedResource {
  return { type, key, version, bytes: encodeMessage(type, message) };
}

function decodeResource({ type, key, version, bytes }: EncodedResource): Resource {
  // The pair of type and message is that of the resource which was encoded.
  return { type, key, version, message: decodeMessage(type, bytes) } as Resource;
}
