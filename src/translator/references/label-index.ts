/** Indexes objects by namespace and label, so that a selector reads only the objects that carry one of its labels. */
import { hasLabels, type Labels } from "../../api/label-selector.ts";
import type { Collection, Index, ReadableIndex } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";

interface Labelled {
  readonly metadata: { readonly namespace?: string; readonly labels?: Labels };
}

export function indexByLabels<V extends Labelled>(collection: Collection<V>): Index<V> {
  return collection.index(({ metadata }) => [
    metadata.namespace ?? "",
    ...Object.entries(metadata.labels ?? {}).map((label) => labelValue(metadata.namespace ?? "", label)),
  ]);
}

/** Returns the objects of the namespace that carry all labels, ordered by name. */
export function selectByLabels<V extends Labelled>(
  read: Read,
  index: ReadableIndex<V>,
  namespace: string,
  wanted: Labels,
): V[] {
  const [first] = Object.entries(wanted).sort(([a], [b]) => (a < b ? -1 : 1));
  return read
    .byIndex(index, first === undefined ? namespace : labelValue(namespace, first))
    .map((entry) => entry.value)
    .filter((value) => hasLabels(wanted, value.metadata.labels ?? {}));
}

function labelValue(namespace: string, [name, value]: readonly [string, string]): string {
  return `${namespace} ${name}=${value}`;
}
