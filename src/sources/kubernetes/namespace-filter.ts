/**
 * Leaves out the objects of namespaces that an installation does not look at. In: the events of a whole cluster. Out:
 * those of the namespaces that are chosen by their labels. A namespace that is labelled anew brings its objects, or takes
 * them away, at once. Objects without a namespace always count.
 */
import { type LabelSelector, matchesSelector } from "../../api/label-selector.ts";
import { objectId, objectKey, type KubeObject } from "../../api/object.ts";
import type { ObjectEvent, SourceSink } from "../source.ts";

/** @param selectors one of them has to match; an empty list chooses every namespace */
export function filterNamespaces(sink: SourceSink, selectors: readonly LabelSelector[]): SourceSink {
  if (selectors.length === 0) return sink;
  const filter = new NamespaceFilter(selectors);
  return {
    apply: (events) => sink.apply(filter.pass(events)),
    report: (problems) => sink.report(problems),
  };
}

class NamespaceFilter {
  readonly #selectors: readonly LabelSelector[];
  readonly #chosen = new Set<string>();
  /** Everything that has a namespace, by namespace and key. */
  readonly #objects = new Map<string, Map<string, KubeObject>>();

  constructor(selectors: readonly LabelSelector[]) {
    this.#selectors = selectors;
  }

  /** Namespaces come first: what they choose in this batch is chosen for all of it. */
  pass(events: readonly ObjectEvent[]): ObjectEvent[] {
    const passed: ObjectEvent[] = [];
    for (const event of events) if (isNamespace(event)) passed.push(event, ...this.#choose(event));
    for (const event of events) if (!isNamespace(event) && this.#remember(event)) passed.push(event);
    return passed;
  }

  /** @returns what this brings or takes away */
  #choose(event: ObjectEvent): ObjectEvent[] {
    const { name } = event.type === "set" ? event.object.metadata : event.id;
    const isChosen = event.type === "set" && this.#matches(event.object);
    if (isChosen === this.#chosen.has(name)) return [];
    const objects = [...(this.#objects.get(name)?.values() ?? [])];
    if (isChosen) {
      this.#chosen.add(name);
      return objects.map((object) => ({ type: "set", object }));
    }
    this.#chosen.delete(name);
    return objects.map((object) => ({ type: "delete", id: objectId(object) }));
  }

  #matches({ metadata }: KubeObject): boolean {
    const labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name };
    return this.#selectors.some((selector) => matchesSelector(selector, labels));
  }

  /** @returns whether the event counts */
  #remember(event: ObjectEvent): boolean {
    const id = event.type === "set" ? objectId(event.object) : event.id;
    const { namespace } = id;
    if (namespace === "") return true;
    const objects = this.#objects.get(namespace) ?? new Map<string, KubeObject>();
    if (event.type === "set") this.#objects.set(namespace, objects.set(objectKey(id), event.object));
    else if (event.type === "delete" && objects.delete(objectKey(id)) && objects.size === 0)
      this.#objects.delete(namespace);
    return this.#chosen.has(namespace);
  }
}

function isNamespace(event: ObjectEvent): boolean {
  const { group, kind } = event.type === "set" ? objectId(event.object) : event.id;
  return group === "" && kind === "Namespace";
}
