/** A receiver of source events that records every batch and lets a test wait for a condition. */
import { objectId, objectKey, type KubeObject } from "../../../src/api/object.ts";
import type { ObjectEvent, SourceDiagnostic, SourceSink } from "../../../src/sources/source.ts";

export class RecordingSink implements SourceSink {
  readonly batches: (readonly ObjectEvent[])[] = [];
  /** The objects after all batches, by "group/kind/namespace/name". */
  readonly objects: Map<string, KubeObject> = new Map();
  problems: readonly SourceDiagnostic[] = [];
  #waiting: (() => void)[] = [];

  apply(events: readonly ObjectEvent[]): void {
    this.batches.push(events);
    for (const event of events) {
      if (event.type === "set") this.objects.set(objectKey(objectId(event.object)), event.object);
      else this.objects.delete(objectKey(event.id));
    }
    this.#wake();
  }

  report(problems: readonly SourceDiagnostic[]): void {
    this.problems = problems;
    this.#wake();
  }

  /** Resolves when the condition holds, now or after a later batch or report. */
  async until(condition: (sink: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Returns the types of all events of one object, in order. */
  history(key: string): ObjectEvent["type"][] {
    return this.batches
      .flat()
      .filter((event) => objectKey(event.type === "set" ? objectId(event.object) : event.id) === key)
      .map((event) => event.type);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
