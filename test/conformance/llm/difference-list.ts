/** The list of differences between this gateway and others, with a verdict on each (differences.json). */
import type { Difference } from "./compare.ts";

/**
 * `ours`: this gateway departs from the other one on purpose, and the reason says why. `theirs`: the other gateway loses
 * or breaks something. `equal meaning`: the vendor or the client takes both in the same way.
 */
export const VERDICTS: readonly string[] = ["ours", "theirs", "equal meaning"];

export interface Entry {
  readonly peer: string;
  /** Such as "Completions to Gemini". */
  readonly pair: string;
  /** `request` is what the vendor gets; `answer` and `stream` are what the client gets. */
  readonly part: string;
  readonly path: string;
  /** One of VERDICTS; "" for a new difference. */
  readonly verdict: string;
  readonly reason: string;
  /** Our value and theirs, divided by " <> ", by the names of the cases that have them. */
  readonly seen: Readonly<Record<string, string>>;
}

interface Place extends Pick<Entry, "peer" | "pair" | "part"> {
  /** Name of the case. */
  readonly name: string;
}

export class DifferenceList {
  /** Both values by the name of the case, for each difference. */
  readonly #seen = new Map<string, Map<string, string>>();

  add({ peer, pair, part, name }: Place, differences: readonly Difference[]): void {
    for (const { path, ours, theirs } of differences) {
      const key = keyOf({ peer, pair, part, path });
      const seen = this.#seen.get(key) ?? new Map<string, string>();
      this.#seen.set(key, seen);
      // Of equal places in one list the first one stands for all.
      if (!seen.has(name)) seen.set(name, `${ours} <> ${theirs}`);
    }
  }

  /** Returns all differences, sorted. @param judged gives the verdicts */
  entries(judged: readonly Entry[]): Entry[] {
    const before = new Map(judged.map((entry) => [keyOf(entry), entry]));
    return [...this.#seen]
      .map(([key, seen]) => {
        const { verdict = "", reason = "" } = before.get(key) ?? {};
        const [peer = "", pair = "", part = "", path = ""] = key.split("\t");
        return { peer, pair, part, path, verdict, reason, seen: groupByValues(seen) };
      })
      .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }
}

/** Returns the values by the names of all cases that have them. */
function groupByValues(seen: ReadonlyMap<string, string>): Record<string, string> {
  const groups = Map.groupBy(seen, ([, values]) => values);
  return Object.fromEntries([...groups].map(([values, cases]) => [cases.map(([name]) => name).join(", "), values]));
}

function keyOf({ peer, pair, part, path }: Pick<Entry, "peer" | "pair" | "part" | "path">): string {
  return [peer, pair, part, path].join("\t");
}
