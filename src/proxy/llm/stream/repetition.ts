/**
 * A shortcut for streams in which most events differ from the one before only in their text. When everything around the
 * text is equal byte for byte and the text needs no JSON escapes, the event says the same as the one before with the new
 * text; nothing is parsed. Translated and guarded streams and the measure of texts use it.
 */

/**
 * Matches a JSON string without escapes: printable ASCII except quotes and backslashes. An empty text may be printed in
 * another way.
 */
const PLAIN = /^"[ !#-[\]-~]+"$/;

/**
 * Matches what follows a text up to and including the last member of an event, if its value is random letters. OpenAI
 * (`obfuscation`) and Bedrock (`p`) add it to hide the lengths of texts; no reader looks at it.
 */
const PADDED = /^(.*)(,"(?:obfuscation|p)":")[A-Za-z0-9]*"\}$/s;

/** A text around another one. */
export interface Pattern {
  readonly before: string;
  readonly after: string;
}

interface EventPattern extends Pattern {
  /** What is between `after` and the random letters; undefined for an event without them. */
  readonly padding: string | undefined;
}

export class Repetition {
  #event: EventPattern | undefined;
  #type = "";

  /**
   * Remembers an event with one text and forgets the event before, because how an event is translated may depend on the
   * events in between.
   * @param text the text that the event carries; undefined for an event that does anything else
   * @param event its data, as latin1
   * @param type name of the event where the framing carries one: equal data mean the same only in events of one type
   */
  learn(text: string | undefined, event: string, type = ""): void {
    const pattern = text === undefined ? undefined : patternOf(copyOf(event), text);
    this.#event = pattern && withoutPadding(pattern);
    this.#type = type;
  }

  /**
   * @param event data, as latin1
   * @returns the text, as a JSON string without escapes, when only the text differs from the remembered event
   */
  find(event: string, type = ""): string | undefined {
    return this.#event === undefined || type !== this.#type ? undefined : textIn(event, this.#event);
  }
}

/** Copies a text, because a slice of a chunk would keep the whole chunk in memory while the stream is open. */
function copyOf(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

function withoutPadding({ before, after }: Pattern): EventPattern {
  const [, rest, padding] = PADDED.exec(after) ?? [];
  return { before, after: rest ?? after, padding };
}

/** @returns the JSON string in place of the text; undefined when anything else differs, or the text has escapes */
function textIn(event: string, { before, after, padding }: EventPattern): string | undefined {
  // Slices copy nothing and are compared as whole words; `startsWith` and `endsWith` compare character by character and
  // take five to ten times as long.
  if (event.slice(0, before.length) !== before) return undefined;
  // A text without escapes ends at the next quote.
  const end = event.indexOf('"', before.length + 1) + 1;
  const rest = end + after.length;
  if (end === 0 || event.slice(end, rest) !== after) return undefined;
  if (padding === undefined ? rest !== event.length : !endsInPadding(event, rest, padding)) return undefined;
  const literal = event.slice(before.length, end);
  return PLAIN.test(literal) ? literal : undefined;
}

function endsInPadding(event: string, from: number, padding: string): boolean {
  if (!event.startsWith(padding, from)) return false;
  let at = from + padding.length;
  while (isLetterOrDigit(event.charCodeAt(at))) at++;
  return at === event.length - 2 && event.endsWith('"}');
}

function isLetterOrDigit(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39);
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
