/** A receiver of source events that a test can wait on: it remembers every batch and resolves when a condition holds. */
import { objectId, objectKey, type KubeObject } from "../../../src/api/object.ts";
import type { ObjectEvent, SourceProblem, SourceSink } from "../../../src/sources/source.ts";

export class RecordingSink implements SourceSink {
  readonly batches: (readonly ObjectEvent[])[] = [];
  /** What a reader of all batches would hold now, by "group/kind/namespace/name". */
  readonly objects: Map<string, KubeObject> = new Map();
  problems: readonly SourceProblem[] = [];
  #waiting: (() => void)[] = [];

  apply(events: readonly ObjectEvent[]): void {
    this.batches.push(events);
    for (const event of events) {
      if (event.type === "set") this.objects.set(objectKey(objectId(event.object)), event.object);
      else this.objects.delete(objectKey(event.id));
    }
    this.#wake();
  }

  report(problems: readonly SourceProblem[]): void {
    this.problems = problems;
    this.#wake();
  }

  /** Resolves as soon as the condition holds after a batch or report; at once when it holds already. */
  async until(condition: (sink: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Everything told about one object, in order. */
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
