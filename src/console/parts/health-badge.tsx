/** The state of the data plane as a word with a sign, so that it does not depend on colour. */
import type { JSX } from "preact";
import type { HealthState } from "../model/health.ts";

const BADGES: Readonly<Record<HealthState | "connecting", readonly [sign: string, text: string, tone: string]>> = {
  well: ["✓", "Well", "good"],
  degraded: ["!", "Degraded", "warn"],
  starting: ["…", "Starting", "info"],
  disconnected: ["×", "Not connected", "bad"],
  connecting: ["…", "Connecting", "info"],
};

export function HealthBadge({ state }: { readonly state: HealthState | "connecting" }): JSX.Element {
  const [sign, text, tone] = BADGES[state];
  return (
    <span class={`badge ${tone}`} role="status" data-state={state}>
      <span aria-hidden="true">{sign}</span> {text}
    </span>
  );
}
