/**
 * The violations of one object, collected up to a bound: what strangers send must not decide how long the answer is. Used
 * by the validator, whose checks stop when the list is full.
 */
import type { Violation } from "./violation.ts";

/** At most so many of one object are told, the note about the others included. */
const MAX_VIOLATIONS = 100;
/** After so many errors a generated validator stops to look for more. An error may repeat another one that is told. */
export const MAX_SCHEMA_ERRORS = 128;
/** Characters of one path and of one message. Map keys come from the object and may be long. */
const MAX_PATH = 1_024;
const MAX_MESSAGE = 2_048;

export class ViolationList {
  readonly #errors: Violation[] = [];
  readonly #warnings: Violation[] = [];
  #leftOut = 0;
  #isUnfinished = false;

  /** Whether nothing that is found later is told. Warnings never fill the list: an error behind them must be found. */
  get isFull(): boolean {
    return this.#errors.length > MAX_VIOLATIONS;
  }

  /** Whether one of those that were found so far has this reason. */
  has(reasons: ReadonlySet<string>): boolean {
    return this.#errors.some(({ reason }) => reasons.has(reason));
  }

  /** Takes violations until the list is full; the check that yields them does no further work then. */
  addAll(violations: Iterable<Violation>): void {
    if (this.isFull) return;
    for (const violation of violations) {
      this.#add(violation);
      if (this.isFull) return;
    }
  }

  /** @param known how many are known to be left out, beside those that nobody looked for */
  leaveOut(known: number): void {
    this.#leftOut += known;
    this.#isUnfinished = true;
  }

  /** Errors in the order in which they were found, then warnings, then a note when there are more. */
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
