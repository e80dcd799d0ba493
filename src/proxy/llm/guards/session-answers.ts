/**
 * The provider's side of a guarded session: holds events back until the response guards have seen their text, and drops
 * an answer that they reject up to its end. guards/session.ts uses it.
 *
 * Several answers may be under way at once, next to transcripts of what the user says. Each of them is an *owner* of
 * texts: lanes of text belong to one, and a rejection drops what is still to come of those with text in the window.
 */
import { ProxyError } from "../../exchange/errors.ts";
import { responsesTexts } from "../formats/responses/texts.ts";
import { objectsIn, type StreamedText } from "../formats/guarded-text.ts";
import { objectOf, stringOf, type JsonObject } from "../shared/json.ts";
import { TextWindows, type WindowGuards } from "./text-windows.ts";

/** What a step releases. */
export interface Released {
  /** Events that go on to the client, printed, in order. */
  readonly events: readonly string[];
  /** Message of the guard that has rejected an answer; undefined when none has. */
  readonly rejection?: string;
  /** The stream of each error that tells the client so; undefined for those without a name. */
  readonly streams?: readonly (string | undefined)[];
  /** Answers that the provider should stop. */
  readonly cancelled?: readonly string[];
}

interface HeldEvent {
  readonly event: JsonObject;
  readonly printed: string;
  readonly owner: Owner | undefined;
  /** Whether a guard looks at a text in it. */
  readonly hasText: boolean;
  readonly isFinal: boolean;
}

/** What texts belong to: an answer, a transcript, an item of the conversation, or all that is said in a translation. */
interface Owner {
  /** Unique in the session. */
  readonly name: string;
  /** Whether an event says that nothing more of it will come. */
  readonly hasEnd: boolean;
  /** The answer that the provider can stop; undefined for others and for answers without an id. */
  readonly responseId?: string | undefined;
  readonly stream?: string | undefined;
}

export interface SessionRules {
  /** Most bytes of events that wait for a check. */
  readonly limitBytes: number;
  /**
   * Whether an error ends an answer, as in sessions of Responses: a client takes any end behind it for that of its next
   * request. In realtime sessions an error stands beside the answer, whose end still comes.
   */
  readonly errorEndsAnswer: boolean;
}

/** Types of events after which an answer or a transcript is over. */
const FINAL =
  /^(?:response\.(?:done|completed|incomplete|failed|cancelled)|conversation\.item\.input_audio_transcription\.(?:completed|failed))$/;
/** Types of events that end a text, whose window is checked although it is not full. */
const ENDS_TEXT = /\.(?:done|completed|failed)$/;
/** A provider with more answers under way than any vendor allows is broken or hostile. */
const MAX_ANSWERS = 1_024;
const NOTHING: Released = { events: [] };

export class SessionAnswers {
  readonly #windows: TextWindows;
  readonly #rules: SessionRules;
  #held: HeldEvent[] = [];
  #heldBytes = 0;
  /** Owners that are dropped up to their ends, by their names, with the items that are known to be theirs. */
  readonly #dropped = new Map<string, Set<string>>();
  /** The answer that has begun last in each stream of the session, for events that do not name theirs. */
  readonly #current = new Map<string, string>();

  constructor(guards: WindowGuards, rules: SessionRules) {
    this.#windows = new TextWindows(guards);
    this.#rules = rules;
  }

  /**
   * Takes an event of the provider. The call before must have ended.
   * @throws ProxyError llm_response_invalid for more answers and parts than any vendor opens
   */
  async take(event: JsonObject): Promise<Released> {
    const type = stringOf(event["type"]) ?? "";
    const isFinal = FINAL.test(type) || this.#isEndingError(type);
    const owner = this.#ownerOf(event, type);
    if (isFinal && !type.startsWith("conversation.")) this.#current.delete(streamOf(event));
    if (this.#isDropped(event, owner)) return isFinal ? this.#endDropped(event, owner) : NOTHING;
    const texts = textsOf(event, type);
    const taken = texts.filter((text) => this.#windows.take({ ...text, lane: laneOf(owner, text) }) !== undefined);
    const held: HeldEvent = { event, printed: JSON.stringify(event), owner, hasText: taken.length > 0, isFinal };
    if (this.#held.length === 0 && taken.length === 0) {
      this.#forget(held);
      return { events: [held.printed] };
    }
    this.#hold(held);
    // A text that is complete has nothing to wait for.
    const isWhole = taken.some(({ isRepeated }) => isRepeated === true);
    const isDue = isWhole || isFinal || ENDS_TEXT.test(type) || this.#isFull;
    if (!isDue) return NOTHING;
    const released = await this.release();
    this.#forget(held);
    return released;
  }

  /** Checks what is held. */
  async release(): Promise<Released> {
    const message = await this.#windows.check();
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    if (message === undefined) return { events: held.map(({ printed }) => printed) };
    return this.#reject(held, message);
  }

  get #isFull(): boolean {
    return this.#windows.isFull || this.#heldBytes >= this.#rules.limitBytes;
  }

  #hold(held: HeldEvent): void {
    this.#held.push(held);
    this.#heldBytes += held.printed.length;
  }

  #isEndingError(type: string): boolean {
    return type === "error" && this.#rules.errorEndsAnswer;
  }

  /** Drops the owners of texts in a window that was rejected; other events have nothing to do with it. */
  #reject(held: readonly HeldEvent[], rejection: string): Released {
    const rejected = new Map<string, Owner>();
    for (const { hasText, owner } of held) if (hasText && owner !== undefined) rejected.set(owner.name, owner);
    const isOver = new Set(held.filter(({ isFinal }) => isFinal).map(({ owner }) => owner?.name));
    const cancelled: string[] = [];
    for (const { name, hasEnd, responseId } of rejected.values()) {
      if (!hasEnd || isOver.has(name)) continue;
      this.#drop(name, held);
      if (responseId !== undefined) cancelled.push(responseId);
    }
    const events = held.flatMap(({ event, printed, owner, isFinal, hasText }) => {
      if (!hasText && (owner === undefined || !rejected.has(owner.name))) return [printed];
      return isFinal && !this.#rules.errorEndsAnswer ? [printWithoutText(event)] : [];
    });
    const answers = [...rejected.values()].filter(({ hasEnd }) => hasEnd);
    const streams = this.#rules.errorEndsAnswer ? answers.map(({ stream }) => stream) : [];
    return { events, rejection, cancelled, streams: streams.length === 0 ? [undefined] : streams };
  }

  #drop(name: string, held: readonly HeldEvent[]): void {
    if (this.#dropped.size === MAX_ANSWERS) throw tooMany("rejected answers");
    const items = new Set<string>();
    this.#dropped.set(name, items);
    for (const { event, owner } of held) if (owner?.name === name) addItem(items, event);
  }

  #isDropped(event: JsonObject, owner: Owner | undefined): boolean {
    if (this.#dropped.size === 0 || owner === undefined) return false;
    const items = this.#dropped.get(owner.name);
    if (items !== undefined) {
      addItem(items, event);
      return true;
    }
    const item = itemIdOf(event);
    return item !== undefined && [...this.#dropped].some(([name, known]) => !isTranscript(name) && known.has(item));
  }

  /** The client of a realtime session needs the end of an answer, in its place behind what is held. */
  #endDropped(event: JsonObject, owner: Owner | undefined): Released {
    if (owner !== undefined) {
      this.#dropped.delete(owner.name);
      this.#windows.clear(owner.name);
    }
    if (this.#rules.errorEndsAnswer) return NOTHING;
    const printed = printWithoutText(event);
    if (this.#held.length === 0) return { events: [printed] };
    this.#hold({ event, printed, owner: undefined, hasText: false, isFinal: true });
    return NOTHING;
  }

  /** Forgets the lanes of what is over. */
  #forget({ owner, isFinal }: HeldEvent): void {
    // The text of an item comes in one event.
    if (owner !== undefined && (isFinal || owner.name.startsWith("item "))) this.#windows.clear(owner.name);
  }

  #ownerOf(event: JsonObject, type: string): Owner | undefined {
    if (type.startsWith("response.") || this.#isEndingError(type)) return this.#answerOf(event, type);
    if (type.startsWith("session.")) return { name: "session", hasEnd: false };
    if (!type.startsWith("conversation.item.")) return undefined;
    const id = JSON.stringify(itemIdOf(event) ?? "");
    const isSpeech = type.startsWith("conversation.item.input_audio_transcription.");
    return isSpeech ? { name: `transcript ${id}`, hasEnd: true } : { name: `item ${id}`, hasEnd: false };
  }

  #answerOf(event: JsonObject, type: string): Owner {
    const stream = streamOf(event);
    const id = stringOf(event["response_id"]) ?? stringOf(objectOf(event["response"])?.["id"]);
    if (id !== undefined && type === "response.created") {
      if (this.#current.size === MAX_ANSWERS && !this.#current.has(stream)) throw tooMany("streams");
      this.#current.set(stream, id);
    }
    const responseId = id ?? this.#current.get(stream);
    const name = responseId === undefined ? `stream ${stream}` : `answer ${JSON.stringify(responseId)}`;
    return { name, hasEnd: true, responseId, stream: stringOf(event["stream_id"]) };
  }
}

/** A transcript belongs to an item of the client, whose other events go on. */
function isTranscript(owner: string): boolean {
  return owner.startsWith("transcript ");
}

function tooMany(detail: string): ProxyError {
  return new ProxyError("llm_response_invalid", { detail: `a session of more than ${MAX_ANSWERS} ${detail}` });
}

/** Names the stream of a session that an event belongs to: a client of Responses may open several. */
function streamOf(event: JsonObject): string {
  return JSON.stringify(event["stream_id"] ?? "");
}

function laneOf(owner: Owner | undefined, { lane }: StreamedText): string {
  return `${owner?.name ?? ""} ${lane}`;
}

function itemIdOf(event: JsonObject): string | undefined {
  return stringOf(event["item_id"]) ?? stringOf(objectOf(event["item"])?.["id"]);
}

function addItem(items: Set<string>, event: JsonObject): void {
  const id = itemIdOf(event);
  if (id !== undefined && items.size < MAX_ANSWERS) items.add(id);
}

/** The client needs the end of an answer or a transcript, and must not get its text. */
function printWithoutText(event: JsonObject): string {
  const response = objectOf(event["response"]);
  const bare = response === undefined ? {} : { response: { ...response, output: [] } };
  return JSON.stringify({ ...event, ...bare, ...(event["transcript"] === undefined ? {} : { transcript: "" }) });
}

/** Items that the client has added come back in events; guards look at them for what the session understood of speech. */
function textsOf(event: JsonObject, type: string): StreamedText[] {
  const item = objectOf(event["item"]);
  if (!type.startsWith("conversation.item.") || item === undefined) return responsesTexts.streamedTexts(event);
  const ofClient =
    item["type"] === "function_call_output" || (item["type"] === "message" && item["role"] !== "assistant");
  if (!ofClient) return responsesTexts.streamedTexts(event);
  const speech = objectsIn(item["content"]).filter((part) => part["type"] === "input_audio");
  return responsesTexts.streamedTexts({ ...event, item: { ...item, content: speech, output: null } });
}
