/**
 * Filters the events of a cluster by the labels of namespaces. The controller puts it between source and translator
 * when its installation is limited to some namespaces. When a namespace is relabelled, its objects are added or removed
 * at once. Objects without a namespace always pass.
 */
import { type LabelSelector, matchesSelector } from "../../api/label-selector.ts";
import { objectId, objectKey, type KubeObject } from "../../api/object.ts";
import type { ObjectEvent, SourceSink } from "../source.ts";

/** @param selectors a namespace must match at least one; an empty list selects every namespace */
export function filterNamespaces(sink: SourceSink, selectors: readonly LabelSelector[]): SourceSink {
  if (selectors.length === 0) return sink;
  const filter = new NamespaceFilter(selectors);
  return {
    apply: (events) => sink.apply(filter.pass(events)),
    report: (diagnostics) => sink.report(diagnostics),
  };
}

/**
 * Remembers the objects of all namespaces, since a namespace that is relabelled later must bring its objects without a
 * new list.
 */
class NamespaceFilter {
  readonly #selectors: readonly LabelSelector[];
  readonly #chosen = new Set<string>();
  /** All objects with a namespace, by namespace and key, also of namespaces that are not selected. */
  readonly #objects = new Map<string, Map<string, KubeObject>>();

  constructor(selectors: readonly LabelSelector[]) {
    this.#selectors = selectors;
  }

  /** Filters a batch. Namespaces come first, so that their selection applies to the whole batch. */
  pass(events: readonly ObjectEvent[]): ObjectEvent[] {
    const passed: ObjectEvent[] = [];
    for (const event of events) if (isNamespace(event)) passed.push(event, ...this.#choose(event));
    for (const event of events) if (!isNamespace(event) && this.#remember(event)) passed.push(event);
    return passed;
  }

  /**
   * Updates the selection.
   * @returns the events of the objects that are added or removed with the namespace
   */
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

  /** @returns whether the event passes */
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
