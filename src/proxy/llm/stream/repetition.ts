/**
 * Most events of a stream are the one before with another text in it. Where an event is that, byte for byte, and its text
 * needs no escape in JSON, so is what becomes of it: neither has to be parsed or printed.
 */

/** Text that JSON writes as it is: printable ASCII but quotes and backslashes. */
const PLAIN = /^"[ !#-[\]-~]*"$/;

interface Pattern {
  readonly before: string;
  readonly after: string;
}

export class Repetition {
  #event: Pattern | undefined;
  #answer: Pattern | undefined;

  /**
   * Remembers how an event was answered. What is remembered from before does not count any more: the answer may depend
   * on what came in between.
   * @param text what the event carries on into its answer; undefined for an event that does something else
   * @param event its data, as latin1
   */
  learn(text: string | undefined, event: string, answer: string): void {
    this.#event = undefined;
    const literal = JSON.stringify(text ?? "");
    if (text === undefined || !PLAIN.test(literal)) return;
    this.#event = around(event, literal);
    this.#answer = around(answer, literal);
  }

  /** @param event data, as latin1. @returns the answer, if the event differs in its text only */
  answer(event: string): string | undefined {
    const [from, to] = [this.#event, this.#answer];
    if (from === undefined || to === undefined) return undefined;
    if (event.length < from.before.length + from.after.length + 2) return undefined;
    // Searched for at its only place: `startsWith` compares character by character and takes three times as long.
    if (event.lastIndexOf(from.before, 0) !== 0 || !event.endsWith(from.after)) return undefined;
    const literal = event.slice(from.before.length, event.length - from.after.length);
    return PLAIN.test(literal) ? to.before + literal + to.after : undefined;
  }
}

/** @returns undefined where the literal stands more than once, since nobody knows then which of them is the text */
function around(whole: string, literal: string): Pattern | undefined {
  const at = whole.indexOf(literal);
  if (at < 0 || at !== whole.lastIndexOf(literal)) return undefined;
  return { before: whole.slice(0, at), after: whole.slice(at + literal.length) };
}
