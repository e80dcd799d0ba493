/**
 * Collects the violations of one object up to a limit, so that a client cannot decide how long the answer is. The
 * validator uses it, and its checks stop when the list is full.
 */
import type { Violation } from "./violation.ts";

/** Limit of reported violations per object, including the note about the others. */
const MAX_VIOLATIONS = 100;
/**
 * Number of errors after which a generated validator stops. It is higher than MAX_VIOLATIONS because an error may
 * repeat another.
 */
export const MAX_SCHEMA_ERRORS = 128;
/** Limits for the characters of one path and of one message. Map keys come from the object and may be long. */
const MAX_PATH = 1_024;
const MAX_MESSAGE = 2_048;

export class ViolationList {
  readonly #errors: Violation[] = [];
  readonly #warnings: Violation[] = [];
  #leftOut = 0;
  #isUnfinished = false;

  /**
   * Whether later violations would not be reported. Warnings never fill the list, because an error behind them must be
   * found.
   */
  get isFull(): boolean {
    return this.#errors.length > MAX_VIOLATIONS;
  }

  /** Whether one of the errors so far has one of these reasons. */
  has(reasons: ReadonlySet<string>): boolean {
    return this.#errors.some(({ reason }) => reasons.has(reason));
  }

  /** Takes violations until the list is full; the generator that yields them does no further work then. */
  addAll(violations: Iterable<Violation>): void {
    if (this.isFull) return;
    for (const violation of violations) {
      this.#add(violation);
      if (this.isFull) return;
    }
  }

  /** @param known how many violations are known to be omitted, besides those that were not searched for */
  leaveOut(known: number): void {
    this.#leftOut += known;
    this.#isUnfinished = true;
  }

  /** Returns errors in the order in which they were found, then warnings, then a note when there are more. */
  toArray(): Violation[] {
    const all = [...this.#errors, ...this.#warnings];
    if (all.length + this.#leftOut <= MAX_VIOLATIONS && !this.#isUnfinished) return all;
    const told = all.slice(0, MAX_VIOLATIONS - 1);
    const more = all.length - told.length + this.#leftOut;
    return [...told, moreThan(more, this.#errors.length > 0 ? "error" : "warning", this.isFull || this.#isUnfinished)];
  }

  #add(violation: Violation): void {
    const list = violation.severity === "error" ? this.#errors : this.#warnings;
    if (list.length > MAX_VIOLATIONS) this.#leftOut++;
    else list.push(cut(violation));
  }
}

function moreThan(count: number, severity: Violation["severity"], isUnfinished: boolean): Violation {
  const counted = `${isUnfinished ? "at least " : ""}${count} more violation${count === 1 ? " is" : "s are"} left out`;
  const message = `Too many: ${counted}${isUnfinished ? ", and the rest of the object was not looked at" : ""}`;
  return { path: "", severity, reason: "FieldValueTooMany", message, suggestion: "mend those that are listed first" };
}

function cut(violation: Violation): Violation {
  const { path, message } = violation;
  if (path.length <= MAX_PATH && message.length <= MAX_MESSAGE) return violation;
  return { ...violation, path: shortened(path, MAX_PATH), message: shortened(message, MAX_MESSAGE) };
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;
}
