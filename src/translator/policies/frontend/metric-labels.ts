/**
 * Names of labels that a GwPolicy adds to metrics. In: what users call them. Out: how Prometheus spells them. Two labels of
 * one name in one metric would make its whole text unreadable: such a name is refused here, and the others serve.
 */
import { TAKEN_METRIC_LABELS } from "../../../../generated/metric-labels.ts";
import { quote } from "../../../lib/quote.ts";

const TAKEN: ReadonlySet<string> = new Set(TAKEN_METRIC_LABELS);

/** Tells whether the labels of one policy can be told apart. */
export class LabelNames {
  /** What users call each one, by how it is spelled. */
  readonly #given = new Map<string, string>();

  /** @returns how the name is spelled, or why it cannot be taken */
  take(name: string): { readonly spelled: string } | { readonly fault: string } {
    const spelled = spell(name);
    const other = this.#given.get(spelled);
    const shown = spelled === name ? quote(name) : `${quote(name)}, in metrics ${quote(spelled)},`;
    if (spelled.startsWith("__")) return { fault: `${shown} begins as only names of Prometheus itself do` };
    if (TAKEN.has(spelled)) return { fault: `${shown} is a label that these metrics have already` };
    if (other !== undefined) return { fault: `${shown} is the same label as ${quote(other)}` };
    this.#given.set(spelled, name);
    return { spelled };
  }
}

/** https://prometheus.io/docs/concepts/data_model: every character that a name cannot have becomes an underscore. */
function spell(name: string): string {
  const spelled = name.replaceAll(/[^a-zA-Z0-9_]/gu, "_");
  return /^[0-9]/.test(spelled) ? `_${spelled}` : spelled;
}
