/**
 * Measures the text in the events of a stream that is passed on, for streams that are left before they report usage.
 * Only events that differ from the one before in more than their text are parsed.
 */
import { parseObject, type JsonObject } from "../shared/json.ts";
import type { StreamedText } from "../formats/guarded-text.ts";
import { around, PLAIN, type Pattern } from "./repetition.ts";

export class TextMeter {
  readonly #textsOf: (event: JsonObject) => readonly StreamedText[];
  #pattern: Pattern | undefined;

  constructor(textsOf: (event: JsonObject) => readonly StreamedText[]) {
    this.#textsOf = textsOf;
  }

  /** @param data of an event, as latin1 @returns bytes of its text in UTF-8 */
  measure(data: string): number {
    return this.#repeated(data) ?? this.#parsed(data);
  }

  #repeated(data: string): number | undefined {
    const pattern = this.#pattern;
    if (pattern === undefined || data.length < pattern.before.length + pattern.after.length + 2) return undefined;
    if (data.lastIndexOf(pattern.before, 0) !== 0 || !data.endsWith(pattern.after)) return undefined;
    const literal = data.slice(pattern.before.length, data.length - pattern.after.length);
    return PLAIN.test(literal) ? literal.length - 2 : undefined;
  }

  #parsed(data: string): number {
    this.#pattern = undefined;
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event === undefined) return 0;
    const texts = this.#textsOf(event).filter(({ isRepeated }) => isRepeated !== true);
    const [only] = texts;
    const literal = JSON.stringify(only?.text ?? "");
    if (texts.length === 1 && PLAIN.test(literal)) this.#pattern = around(data, literal);
    return texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  }
}
