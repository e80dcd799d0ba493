/**
 * A shortcut for streams in which most events differ from the one before only in their text. When everything around the
 * text is equal byte for byte and the text needs no JSON escapes, the translated event is the one before with the new
 * text in it; nothing is parsed or printed. `TranslatedStream` uses it.
 */

/**
 * Matches a JSON string without escapes: printable ASCII except quotes and backslashes. An empty text may be printed in
 * another way.
 */
const PLAIN = /^"[ !#-[\]-~]+"$/;

export interface Pattern {
  readonly before: string;
  readonly after: string;
}

export class Repetition {
  #event: Pattern | undefined;
  #answer: Pattern | undefined;
  #textBytes = 0;

  /** Bytes of the text in the event that `answer` translated last; it is ASCII. */
  get textBytes(): number {
    return this.#textBytes;
  }

  /**
   * Remembers how an event was translated and forgets the event before, because the translation may depend on the
   * events in between.
   * @param text the text that both events carry; undefined for an event that does anything else
   * @param event its data, as latin1
   */
  learn(text: string | undefined, event: string, answer: string): void {
    this.#event = undefined;
    const literal = JSON.stringify(text ?? "");
    if (text === undefined || !PLAIN.test(literal)) return;
    this.#event = around(event, literal);
    this.#answer = around(answer, literal);
  }

  /** @param event data, as latin1 @returns the translation when only the text differs from the remembered event */
  answer(event: string): string | undefined {
    const [from, to] = [this.#event, this.#answer];
    if (from === undefined || to === undefined) return undefined;
    const literal = textIn(event, from);
    if (literal === undefined) return undefined;
    this.#textBytes = literal.length - 2;
    return to.before + literal + to.after;
  }
}

/** @returns the JSON string in place of the text; undefined when anything else differs, or the text has escapes */
export function textIn(event: string, { before, after }: Pattern): string | undefined {
  if (event.length < before.length + after.length + 2) return undefined;
  // lastIndexOf with position 0 tests only the start; `startsWith` compares by character and takes three times as
  // long.
  if (event.lastIndexOf(before, 0) !== 0 || !event.endsWith(after)) return undefined;
  const literal = event.slice(before.length, event.length - after.length);
  return PLAIN.test(literal) ? literal : undefined;
}

/** Returns the pattern of an event around its text; undefined for a text with escapes, and for one that is empty. */
export function patternOf(event: string, text: string): Pattern | undefined {
  const literal = JSON.stringify(text);
  return PLAIN.test(literal) ? around(event, literal) : undefined;
}

/** @returns undefined when the literal occurs more than once, since it is then unknown which occurrence is the text */
function around(whole: string, literal: string): Pattern | undefined {
  const at = whole.indexOf(literal);
  if (at < 0 || at !== whole.lastIndexOf(literal)) return undefined;
  return { before: whole.slice(0, at), after: whole.slice(at + literal.length) };
}
