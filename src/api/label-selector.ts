/** Evaluates label selectors (metav1.LabelSelector). Listeners, namespace filters and policies use it. */

export type Labels = Readonly<Record<string, string>>;

/** Selects every object when it is empty. */
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
    // An unknown operator selects nothing: opening a listener by mistake would be the worse error.
    return operator === "DoesNotExist" && value === undefined;
  });
}

export function hasLabels(wanted: Labels, labels: Labels): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
