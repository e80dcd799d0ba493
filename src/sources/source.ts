/**
 * A source brings objects in: from a folder of files or from a Kubernetes API server. In: files, watches. Out: events.
 * It validates nothing that admission validates and knows nothing of what the objects mean.
 */
import type { KubeObject, ObjectId } from "../api/object.ts";

export type ObjectEvent =
  | { readonly type: "set"; readonly object: KubeObject }
  | { readonly type: "delete"; readonly id: ObjectId }
  /** The object cannot be taken in, and what it targets must not be served without it. Ends with a set or a delete. */
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: unknown; readonly reason: string };

export interface SourceSink {
  /** One batch is one consistent step: the receiver recomputes once. Objects are frozen and hold their defaults. */
  apply(events: readonly ObjectEvent[]): void;
  /** What a reader should know of input that could not be taken in; replaces everything reported before. */
  report(problems: readonly SourceProblem[]): void;
}

/** A fault in the input, with its place. */
export interface SourceProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** "GwPolicy default/keys"; "" when the object cannot be read. */
  readonly object: string;
  /** Field path such as "spec.traffic.timeouts"; "" for the whole object. */
  readonly path: string;
  readonly severity: "error" | "warning";
  readonly message: string;
  /** "did you mean …", or the next step; "" when there is none. */
  readonly suggestion: string;
  /** What the fault does to what serves: "kept: …", "closed: …", "not loaded"; unset when it changes nothing. */
  readonly effect?: string;
}

export interface Source {
  /** Resolves when the first full state has been delivered. */
  start(sink: SourceSink): Promise<void>;
  stop(): Promise<void>;
}
