/** Label selectors, and an index that finds the objects of a namespace by their labels without reading the others. */
import type { Collection, Index, ReadableIndex } from "../lib/collections/collection.ts";
import type { Read } from "../lib/collections/graph.ts";

export type Labels = Readonly<Record<string, string>>;

interface Labelled {
  readonly metadata: { readonly namespace?: string; readonly labels?: Labels };
}

/** metav1.LabelSelector; an empty one selects everything. */
export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (selector === undefined) return false;
  if (!hasLabels(selector.matchLabels ?? {}, labels)) return false;
  return (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === "In") return value !== undefined && values.includes(value);
    if (operator === "NotIn") return value === undefined || !values.includes(value);
    if (operator === "Exists") return value !== undefined;
    // An unknown operator selects nothing: opening a listener by mistake is the worse error.
    return operator === "DoesNotExist" && value === undefined;
  });
}

export function indexByLabels<V extends Labelled>(collection: Collection<V>): Index<V> {
  return collection.index(({ metadata }) => [
    metadata.namespace ?? "",
    ...Object.entries(metadata.labels ?? {}).map((label) => labelValue(metadata.namespace ?? "", label)),
  ]);
}

/** Objects of the namespace that carry all labels, ordered by name. */
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

function hasLabels(wanted: Labels, labels: Labels): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function labelValue(namespace: string, [name, value]: readonly [string, string]): string {
  return `${namespace} ${name}=${value}`;
}
