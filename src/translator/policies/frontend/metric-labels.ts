/**
 * Spells the names of labels that a GwPolicy adds to metrics as Prometheus requires. `reports.ts` uses it. Two labels
 * of one name would make the whole metrics page unreadable for a scraper, so a duplicate is rejected here and the
 * others keep working.
 */
import { RESERVED_METRIC_LABELS } from "../../../../generated/metric-labels.ts";
import { quote } from "../../../lib/quote.ts";

const RESERVED: ReadonlySet<string> = new Set(RESERVED_METRIC_LABELS);

/** Collects the labels of one policy and rejects duplicates. */
export class LabelNames {
  /** The names as users wrote them, by their Prometheus spelling. */
  readonly #given = new Map<string, string>();

  /** @returns the Prometheus spelling, or why the name is rejected */
  take(name: string): { readonly spelled: string } | { readonly error: string } {
    const spelled = spell(name);
    const other = this.#given.get(spelled);
    const shown = spelled === name ? quote(name) : `${quote(name)}, in metrics ${quote(spelled)},`;
    if (spelled.startsWith("__")) return { error: `${shown} begins as only names of Prometheus itself do` };
    if (RESERVED.has(spelled)) return { error: `${shown} is a label that these metrics have already` };
    if (other !== undefined) return { error: `${shown} is the same label as ${quote(other)}` };
    this.#given.set(spelled, name);
    return { spelled };
  }
}

/**
 * Replaces every character that a label name cannot have by an underscore
 * (https://prometheus.io/docs/concepts/data_model).
 */
function spell(name: string): string {
  const spelled = name.replaceAll(/[^a-zA-Z0-9_]/gu, "_");
  return /^[0-9]/.test(spelled) ? `_${spelled}` : spelled;
}
