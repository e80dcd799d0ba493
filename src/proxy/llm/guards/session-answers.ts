/**
 * The provider's side of a guarded session: holds events back until the response guards have seen their text, and drops
 * an answer that they reject up to its end. guards/session.ts uses it.
 */
import { responsesTexts } from "../formats/responses/texts.ts";
import type { StreamedText } from "../formats/guarded-text.ts";
import { objectOf, stringOf, type JsonObject } from "../shared/json.ts";
import { TextWindows, type WindowGuards } from "./text-windows.ts";

/** What a step releases. */
interface Released {
  /** Events that go on to the client, in order. */
  readonly events: readonly JsonObject[];
  /** Set when the guards have rejected an answer. */
  readonly blocked?: {
    readonly message: string;
    /** The answer to stop; undefined when it is over, and for the transcript of what the user said. */
    readonly responseId?: string | undefined;
  };
}

/** Types of events after which an answer is over. */
const FINAL = /^response\.(?:done|completed|incomplete|failed|cancelled)$/;
/** Types of events that end a text, whose window is checked although it is not full. */
const ENDS_TEXT = /\.(?:done|completed)$/;

export class SessionAnswers {
  readonly #windows: TextWindows;
  readonly #limitBytes: number;
  #held: JsonObject[] = [];
  #heldBytes = 0;
  /** The answer that is dropped up to its end; without an id where events of answers carry none. */
  #dropped: { readonly id: string | undefined } | undefined;
  /** The answer that has begun last, for events that do not name theirs. */
  #current: string | undefined;

  /** @param limitBytes most bytes of events that wait for a check */
  constructor(guards: WindowGuards, limitBytes: number) {
    this.#windows = new TextWindows(guards);
    this.#limitBytes = limitBytes;
  }

  /** Takes an event of the provider. */
  async take(event: JsonObject): Promise<Released> {
    const type = stringOf(event["type"]) ?? "";
    const isFinal = FINAL.test(type);
    this.#current = responseIdOf(event) ?? this.#current;
    if (this.#isDropped(event, type)) {
      if (!isFinal) return { events: [] };
      this.#dropped = undefined;
      return { events: [withoutOutput(event)] };
    }
    for (const text of textsOf(event, type)) this.#windows.take(text);
    if (this.#held.length === 0 && !this.#windows.hasNews) {
      if (isFinal) this.#windows.clear();
      return { events: [event] };
    }
    this.#held.push(event);
    this.#heldBytes += JSON.stringify(event).length;
    const isDue = this.#windows.isFull || ENDS_TEXT.test(type) || isFinal || this.#heldBytes >= this.#limitBytes;
    if (!isDue) return { events: [] };
    const released = await this.#check(event, isFinal);
    if (isFinal) this.#windows.clear();
    return released;
  }

  /** Checks what is held, at the end of the session. */
  async release(): Promise<Released> {
    const last = this.#held.at(-1);
    return last === undefined ? { events: [] } : this.#check(last, true);
  }

  async #check(event: JsonObject, isLast: boolean): Promise<Released> {
    const message = await this.#windows.check();
    const events = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    if (message === undefined) return { events };
    const type = stringOf(event["type"]) ?? "";
    if (isLast) return { events: FINAL.test(type) ? [withoutOutput(event)] : [], blocked: { message } };
    if (!type.startsWith("response.")) return { events: [], blocked: { message } };
    this.#dropped = { id: responseIdOf(event) };
    return { events: [], blocked: { message, responseId: this.#dropped.id ?? this.#current } };
  }

  #isDropped(event: JsonObject, type: string): boolean {
    if (this.#dropped === undefined || !type.startsWith("response.")) return false;
    const id = responseIdOf(event);
    return id === undefined || this.#dropped.id === undefined || id === this.#dropped.id;
  }
}

function responseIdOf(event: JsonObject): string | undefined {
  return stringOf(event["response_id"]) ?? stringOf(objectOf(event["response"])?.["id"]);
}

/** The client needs the end of an answer, and must not get its text. */
function withoutOutput(event: JsonObject): JsonObject {
  const response = objectOf(event["response"]);
  return response === undefined ? event : { ...event, response: { ...response, output: [] } };
}

/** Items that the client has added come back in events; response guards have nothing to say about them. */
function textsOf(event: JsonObject, type: string): StreamedText[] {
  const item = objectOf(event["item"]);
  if (
    type.startsWith("conversation.item.") &&
    item !== undefined &&
    item["role"] !== "assistant" &&
    item["type"] !== "function_call"
  )
    return [];
  return responsesTexts.streamedTexts(event);
}
