/**
 * The protocol between the main thread and its workers, for both ends of a Channel. Resources travel encoded, and
 * each worker compiles them for itself.
 */
import { decodeMessage, encodeMessage } from "../../ir/encode.ts";
import type { ApplyResult, Resource, ResourceType, ResourceUpdate } from "../../ir/resource.ts";
import type { LogFormat } from "../../telemetry/log-lines.ts";
import type { Counted, Observations } from "../../telemetry/registry.ts";
import type { Resource as Reporter } from "../../telemetry/otlp/resource.ts";
import type { ProxyLocality } from "../balancing/endpoints.ts";
import type { WatchRefusal } from "../debug-trace/debug-traces.ts";
import type { WatchOptions } from "../debug-trace/watch.ts";
import type { EndpointDump } from "../balancing/endpoint-dump.ts";
import type { ProfileRequest, ThreadProfile } from "../../lib/profiling/capture.ts";
import type { TaskList } from "../proxy.ts";
import type { OpenListener } from "../listeners/tasks.ts";
import type { ProxyErrorCode } from "../exchange/errors.ts";
import type { ExplainedPort, ExplainedRoute } from "../router/explain-route.ts";
import type { CredentialDump } from "../tokens/report.ts";
import type { FetchedToken, TokenRequest } from "../tokens/token.ts";
import type { ThreadRequest } from "../mcp/session/threads.ts";
import type { WorkloadApiDump } from "../spiffe/workload-api.ts";
import type { SharedBuffers } from "../shared-state.ts";

/** Settings that a worker starts with. */
export interface WorkerSettings {
  /** Number of the worker in the tables of shared memory. */
  readonly thread: number;
  readonly shared: SharedBuffers;
  readonly bindAddress: string;
  readonly podName: string | undefined;
  readonly trustedProxies: readonly string[];
  readonly locality: ProxyLocality | undefined;
  readonly spiffeEndpoint: string | undefined;
  /** Shared memory of OwnListeners. */
  readonly ownListeners: SharedArrayBuffer | undefined;
  /** Keys that seal MCP sessions. */
  readonly sessionKeys: readonly string[];
  readonly version: string;
  readonly resource: Reporter;
  /** The log filter as `printLogFilter` writes it. */
  readonly logFilter: string;
  /** Format of the access log. */
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

/** Requests of the main thread to a worker. */
export interface WorkerProtocol {
  readonly apply: {
    readonly ask: EncodedUpdate;
    readonly answer: ApplyResult & { readonly listeners: readonly OpenListener[] };
  };
  /** Returns the counts since the last call, and the current values. */
  readonly collect: { readonly ask: undefined; readonly answer: Collected };
  /** Returns the policies of a route, by "namespace/name". */
  readonly explain: { readonly ask: string; readonly answer: readonly ExplainedRoute[] };
  /** Returns the connection settings of a Gateway, by "namespace/name". */
  readonly explainGateway: { readonly ask: string; readonly answer: readonly ExplainedPort[] };
  /** Opens a watch for `/debug/trace` under a number; responds with why it cannot be, if so. */
  readonly watchOpen: {
    readonly ask: WatchOptions & { readonly watch: number };
    readonly answer: WatchRefusal | undefined;
  };
  /** Responds with events as soon as there are some; undefined after the last one. */
  readonly watchRead: { readonly ask: number; readonly answer: readonly string[] | undefined };
  readonly watchClose: { readonly ask: number; readonly answer: undefined };
  readonly tasks: { readonly ask: undefined; readonly answer: TaskList };
  readonly profile: { readonly ask: ProfileRequest; readonly answer: readonly ThreadProfile[] };
  /** Ends a profile early. */
  readonly profileEnd: { readonly ask: undefined; readonly answer: undefined };
  readonly logFilter: { readonly ask: string; readonly answer: undefined };
  /** A request of another thread about a stream. */
  readonly peer: { readonly ask: ThreadRequest; readonly answer: unknown };
  readonly announce: { readonly ask: undefined; readonly answer: undefined };
  /** Stops accepting; responds when the last connection is gone. */
  readonly drain: { readonly ask: undefined; readonly answer: undefined };
  /** Cuts the remaining connections; responds when all log lines and telemetry about them are handed over. */
  readonly end: { readonly ask: undefined; readonly answer: undefined };
}

export interface Collected {
  readonly counted: Counted;
  /** Current values of gauges that exist per thread. */
  readonly observations: Observations;
  readonly endpoints: readonly EndpointDump[];
  readonly workloadIdentity: WorkloadApiDump | null;
  readonly credentials: readonly CredentialDump[];
}

/** Requests of a worker to the main thread. */
export interface MainProtocol {
  /** Says that the worker can apply updates. */
  readonly ready: { readonly ask: undefined; readonly answer: undefined };
  /** Returns the port that all workers open for a Bind. */
  readonly port: { readonly ask: { readonly bind: string; readonly port: number }; readonly answer: number };
  /** Writes whole lines to stderr; responds when there is room for more. */
  readonly lines: { readonly ask: string; readonly answer: undefined };
  /** Writes whole lines of the access log; responds when there is room for more. */
  readonly accessLines: { readonly ask: string; readonly answer: undefined };
  readonly counted: { readonly ask: Counted; readonly answer: undefined };
  /** Asks for a credential; responds with it, or lets this worker fetch it. */
  readonly token: { readonly ask: TokenRequest; readonly answer: TokenAnswer };
  /** Says what the fetch brought that `token` allowed. */
  readonly tokenFetched: {
    readonly ask: { readonly key: string; readonly outcome: FetchOutcome };
    readonly answer: undefined;
  };
  /** Passes a request on to another thread, and its answer back. */
  readonly peer: { readonly ask: PeerRequest; readonly answer: unknown };
}

/** A request for another thread. */
interface PeerRequest {
  readonly thread: number;
  readonly request: ThreadRequest;
}

/** What a fetch brought. */
export type FetchOutcome =
  | { readonly case: "token"; readonly token: FetchedToken<unknown> }
  | { readonly case: "failure"; readonly failure: FetchFailure };

/** `fetch`: the worker that asked has to fetch. */
export type TokenAnswer = FetchOutcome | { readonly case: "fetch" };

/** A ProxyError on its way to another thread. */
export interface FetchFailure {
  readonly code: ProxyErrorCode;
  readonly detail: string | undefined;
  readonly text: string | undefined;
}

export function encodeUpdate(set: Iterable<Resource>, removed: ResourceUpdate["removed"]): EncodedUpdate {
  return { set: Array.from(set, encodeResource), removed };
}

/** @throws Error when the bytes do not decode, which only a bug in this program can cause */
export function decodeUpdate({ set, removed }: EncodedUpdate): ResourceUpdate {
  return { set: set.map(decodeResource), removed };
}

function encodeResource({ type, key, version, message }: Resource): EncodedResource {
  return { type, key, version, bytes: encodeMessage(type, message) };
}

function decodeResource({ type, key, version, bytes }: EncodedResource): Resource {
  // Type and message belong together, because they were encoded from one resource.
  return { type, key, version, message: decodeMessage(type, bytes) } as Resource;
}
