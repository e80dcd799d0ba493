/** The policies of a rule in the order in which they run: each with where it comes from, and the ones that lost to it. */
import type { JSX } from "preact";
import { levelText, lossText, sourceText, type ExplainedPolicy } from "../model/explanation.ts";

export function PolicyList({ policies }: { readonly policies: readonly ExplainedPolicy[] }): JSX.Element {
  if (policies.length === 0)
    return (
      <p class="empty">
        No policy applies. A GwPolicy whose <code>targetRefs</code> name this route, its Gateway or its listener adds
        one.
      </p>
    );
  return (
    <ol class="policies">
      {policies.map((entry) => (
        <li key={`${entry.preRouting} ${entry.policy} ${entry.part ?? ""}`}>
          <p class="policy-name">
            {entry.policy}
            {entry.part !== undefined && ` (${entry.part})`}
            {entry.preRouting && <span class="badge info">before routing</span>}
          </p>
          <ul class="sources">
            {entry.from.map((source) => (
              <li key={`${source.level} ${source.origin}`}>
                {sourceText(source)} <span class="muted">{levelText(source.level)}</span>
              </li>
            ))}
            {entry.lost.map((loser) => (
              <li key={`${loser.level} ${loser.origin}`} class="lost">
                <del>{sourceText(loser)}</del> <span class="muted">{lossText(loser)}</span>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ol>
  );
}
