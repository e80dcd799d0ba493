/** One evaluation: what it sees, its local variables, and the work it may still do. Work is counted, never timed. */
import type { Scope } from "./scope.ts";

/** Steps for one evaluation on the event loop. A step is about a tenth of a microsecond; `make bench` measures the worst. */
export const REQUEST_STEPS = 20_000;
/** Steps for one rule at admission, where nothing else waits. */
export const RULE_STEPS = 5_000_000;
/** UTF-16 units (or bytes) that cost one step when a function walks over them. */
const UNITS_PER_STEP = 64;
/** No string or byte result is longer than this. */
export const MAX_RESULT_LENGTH: number = 8 * 1024 * 1024;

export class Run {
  readonly scope: Scope;
  readonly locals: unknown[];
  /** Below zero: the budget is spent. */
  steps: number;

  constructor(scope: Scope, slots: number, steps: number) {
    this.scope = scope;
    this.locals = slots === 0 ? NO_LOCALS : [];
    this.steps = steps;
  }

  /** @returns true when the budget is spent */
  spend(steps: number): boolean {
    this.steps -= Math.ceil(steps);
    return this.steps < 0;
  }

  /** Charges work that is linear in a length. @returns true when the budget is spent or the length is out of bounds */
  spendLength(length: number): boolean {
    this.steps -= 1 + Math.floor(length / UNITS_PER_STEP);
    return this.steps < 0 || length > MAX_RESULT_LENGTH;
  }
}

const NO_LOCALS: unknown[] = [];
