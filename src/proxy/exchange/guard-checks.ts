/** The checks that prompt guards have made for one request, for the metric and the log fields about guards. */

export type GuardPhase = "Request" | "Response";

export type GuardOutcome = "Allow" | "Mask" | "Reject" | "FailOpen" | "AuditMask" | "AuditReject";

/** What a guard did, or in audit mode would have done. */
export interface GuardEffect {
  readonly phase: GuardPhase;
  readonly kind: string;
  readonly outcome: GuardOutcome;
}

/** Number of checks with one outcome. */
export interface GuardCount {
  readonly phase: GuardPhase;
  readonly outcome: GuardOutcome;
  count: number;
}

export class GuardChecks {
  readonly #counts = new Map<string, GuardCount>();
  #effect: GuardEffect | undefined;

  add(phase: GuardPhase, kind: string, outcome: GuardOutcome): void {
    const key = `${phase} ${outcome}`;
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, { phase, outcome, count: 1 });
    else known.count++;
    if (outcome === "Allow") return;
    // What happened is shown before what would have happened.
    if (this.#effect === undefined || !isAudit(outcome) || isAudit(this.#effect.outcome))
      this.#effect = { phase, kind, outcome };
  }

  get counts(): Iterable<GuardCount> {
    return this.#counts.values();
  }

  /** Returns the last effect of a guard; undefined when all have let the text pass. */
  get effect(): GuardEffect | undefined {
    return this.#effect;
  }
}

function isAudit(outcome: GuardOutcome): boolean {
  return outcome === "AuditMask" || outcome === "AuditReject";
}
