/**
 * Measures the text in the events of a stream that is passed on, for streams that are left before they report usage.
 * Only events that differ from the one before in more than their text are parsed.
 */
import { parseObject, type JsonObject } from "../shared/json.ts";
import type { StreamedText } from "../formats/guarded-text.ts";
import { Repetition } from "./repetition.ts";

export class TextMeter {
  readonly #textsOf: (event: JsonObject) => readonly StreamedText[];
  readonly #repetition = new Repetition();

  constructor(textsOf: (event: JsonObject) => readonly StreamedText[]) {
    this.#textsOf = textsOf;
  }

  /** @param data of an event, as latin1 @returns bytes of its text in UTF-8 */
  measure(data: string): number {
    const literal = this.#repetition.find(data);
    return literal === undefined ? this.#parsed(data) : literal.length - 2;
  }

  #parsed(data: string): number {
    const event = parseObject(Buffer.from(data, "latin1"));
    const texts = event === undefined ? [] : this.#textsOf(event).filter(({ isRepeated }) => isRepeated !== true);
    this.#repetition.learn(texts.length === 1 ? texts[0]?.text : undefined, data);
    return texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  }
}
