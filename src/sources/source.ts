/**
 * The interface between a source of objects and the translator. A source reads objects from a folder of files or from a
 * Kubernetes API server and emits events. It validates nothing that admission validates, and it does not interpret the
 * objects.
 */
import type { KubeObject, ObjectId } from "../api/object.ts";

export type ObjectEvent =
  | { readonly type: "set"; readonly object: KubeObject }
  | { readonly type: "delete"; readonly id: ObjectId }
  /**
   * The object cannot be accepted, and the routes that it targets must not be served without it. The state ends with
   * the next `set` or `delete` of the same object.
   */
  | { readonly type: "refused"; readonly id: ObjectId; readonly object: unknown; readonly reason: string };

export interface SourceSink {
  /**
   * Applies one batch as one consistent step: the receiver recomputes once. Objects are frozen and their defaults are
   * filled in.
   */
  apply(events: readonly ObjectEvent[]): void;
  /** Reports input that could not be accepted, for the operator; replaces everything that was reported before. */
  report(diagnostics: readonly SourceDiagnostic[]): void;
}

/** One thing that is wrong with the input, and where it is. */
export interface SourceDiagnostic {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Title such as "GwPolicy default/keys"; "" when the object cannot be read. */
  readonly object: string;
  /** Field path such as "spec.traffic.timeouts"; "" for the whole object. */
  readonly path: string;
  readonly severity: "error" | "warning";
  readonly message: string;
  /** Suggests a correction ("did you mean …") or the next step; "" when there is none. */
  readonly suggestion: string;
  /**
   * Says how the diagnostic affects the objects that serve: "kept: …", "closed: …" or "not loaded"; unset when it does not
   * affect them.
   */
  readonly effect?: string;
}

export interface Source {
  /** Resolves when the first full state has been delivered. */
  start(sink: SourceSink): Promise<void>;
  stop(): Promise<void>;
}
