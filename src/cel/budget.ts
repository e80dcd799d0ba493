/**
 * The state of one evaluation: its scope, its local variables and its remaining budget. The budget counts steps and not
 * time, so the result does not depend on the speed or the load of the machine. Without a budget, one expression of a
 * user could block the event loop for all requests.
 */
import type { Scope } from "./scope.ts";

/**
 * Steps of an evaluation on the event loop. A step takes about a tenth of a microsecond; `make bench` measures the
 * worst case.
 */
export const REQUEST_STEPS = 20_000;
/** Steps of one rule at admission, where no other request waits. */
export const RULE_STEPS = 5_000_000;
/** UTF-16 units or bytes that a function scans per step. */
const UNITS_PER_STEP = 64;
/** Limit on the length of a string or bytes result. */
export const MAX_RESULT_LENGTH: number = 8 * 1024 * 1024;

export class Run {
  readonly scope: Scope;
  readonly locals: unknown[];
  /** Remaining steps; negative when the budget is spent. */
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

  /**
   * Charges for work that is linear in a length. @returns true when the budget is spent or the length exceeds the limit
   */
  spendLength(length: number): boolean {
    this.steps -= 1 + Math.floor(length / UNITS_PER_STEP);
    return this.steps < 0 || length > MAX_RESULT_LENGTH;
  }
}

const NO_LOCALS: unknown[] = [];

/** A compiled node: it returns its value or a Failure and never throws. */
export type Program = (run: Run) => unknown;
