/**
 * Holds the events of a streamed answer back until the response guards have seen their text. `GuardedStream` wraps the
 * body in the client's format, translated or not.
 *
 *     source ──▶ parser ──▶ held bytes ──(window passes)──▶ client
 *                  └─ text per lane: 256 characters of before + what is new ──▶ guards
 *
 * A window closes at 1,024 bytes of new text, when the held bytes reach the limit of the buffer, and at the end. Each
 * choice, part and call has a lane of its own, so that no border between two of them, and none between two windows,
 * hides a match that fits into the overlap. A window that passes releases its events unchanged: masks have no effect
 * here. A window that is rejected discards them; the client gets an error event, and the stream ends.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import type { ClientSide } from "../formats/chat-format.ts";
import type { StreamedText } from "../formats/guarded-text.ts";
import { parseObject } from "../shared/json.ts";
import { Repetition } from "../stream/repetition.ts";
import { SseParser } from "../stream/sse.ts";
import { isDone, readStreamError } from "../stream/stream-context.ts";
import { blockedError, TextWindows, type Lane, type WindowGuards } from "./text-windows.ts";

/** What guards know of the client's format. */
export type GuardedClient = Pick<ClientSide, "printStreamError" | "texts">;

interface WindowContext extends WindowGuards {
  readonly client: GuardedClient;
  readonly limitBytes: number;
}

export function guardStream(source: BodyStream, context: WindowContext): BodyStream {
  return new GuardedStream(source, context);
}

class GuardedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #context: WindowContext;
  readonly #parser: SseParser;
  readonly #windows: TextWindows;
  readonly #repetition = new Repetition();
  /** The lane of the event that the repetition has learned. */
  #repeated: Lane | undefined;
  readonly #held: Held = new Held();
  #sink: BodySink | undefined;
  #events = 0;
  #isChecking = false;
  #isOver = false;
  /** Trailers of the source, once it has ended. */
  #trailers: readonly string[] | undefined;

  constructor(source: BodyStream, context: WindowContext) {
    this.#source = source;
    this.#context = context;
    this.#windows = new TextWindows(context);
    this.#parser = new SseParser(context.limitBytes, (data) => this.#event(data));
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    if (!this.#isOver && !this.#isChecking) this.#source.resume();
  }

  destroy(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    const text = chunk.toString("latin1");
    try {
      this.#parser.pushText(text);
    } catch (error) {
      this.#source.destroy();
      this.error(error as Error);
      return false;
    }
    this.#held.add(text);
    const isFull = this.#windows.isFull || this.#held.bytes >= this.#context.limitBytes;
    if (isFull && !this.#isChecking) this.#check(this.#parser.settledBytes);
    return !this.#isChecking && !this.#isOver;
  }

  end(trailers: readonly string[]): void {
    if (this.#isOver) return;
    this.#trailers = trailers;
    if (!this.#isChecking) this.#checkRest(trailers);
  }

  /** What is held was not checked, so the error is all that is sent before the stream breaks off. */
  error(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink?.data(Buffer.from(this.#context.client.printStreamError(readStreamError(error), this.#events)));
    this.#sink?.error(error);
  }

  /** @param data as latin1 */
  #event(data: string): void {
    this.#events++;
    const literal = this.#repetition.find(data);
    if (literal !== undefined && this.#repeated !== undefined)
      return this.#windows.add(this.#repeated, literal.slice(1, -1));
    const texts = this.#textsOf(data);
    const lanes = texts.map((text) => this.#windows.take(text));
    const [text] = texts;
    this.#repeated = texts.length === 1 && text?.isRepeated !== true ? lanes[0] : undefined;
    this.#repetition.learn(this.#repeated === undefined ? undefined : text?.text, data);
  }

  /**
   * @throws ProxyError llm_response_invalid for what no guard can look at: clients may read more than JSON, for example
   * those in Python the number NaN
   */
  #textsOf(data: string): readonly StreamedText[] {
    if (isDone(data)) return [];
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event !== undefined) return this.#context.client.texts.streamedTexts(event);
    throw new ProxyError("llm_response_invalid", { detail: "an event that is not a JSON object" });
  }

  /** Checks the window. @param settledBytes what is sent when it passes */
  #check(settledBytes: number): void {
    this.#isChecking = true;
    this.#windows.check().then(
      (message) => this.#checked(message, settledBytes),
      (error: unknown) => this.#failed(error),
    );
  }

  /** Checks what is left after the end of the source. */
  #checkRest(trailers: readonly string[]): void {
    try {
      this.#parser.end();
    } catch (error) {
      return this.error(error as Error);
    }
    this.#isChecking = true;
    this.#windows.check().then(
      (message) => this.#checkedRest(message, trailers),
      (error: unknown) => this.#failed(error),
    );
  }

  #checked(message: string | undefined, settledBytes: number): void {
    this.#isChecking = false;
    if (this.#isOver) return;
    if (message !== undefined) return this.#block(message);
    const hasRoom = this.#send(this.#held.take(settledBytes));
    if (this.#trailers !== undefined) this.#checkRest(this.#trailers);
    else if (hasRoom && !this.#hasEnded()) this.#source.resume();
  }

  #checkedRest(message: string | undefined, trailers: readonly string[]): void {
    if (this.#isOver) return;
    if (message !== undefined) return this.#block(message);
    this.#send(this.#held.take(Infinity));
    if (this.#hasEnded()) return;
    this.#isOver = true;
    this.#sink?.end(trailers);
  }

  #failed(error: unknown): void {
    this.#isChecking = false;
    if (this.#isOver) return;
    this.#source.destroy();
    this.error(error instanceof Error ? error : new ProxyError("internal", { cause: error }));
  }

  #block(message: string): void {
    this.#isOver = true;
    this.#source.destroy();
    this.#sink?.data(Buffer.from(`data: ${JSON.stringify({ error: blockedError(message) })}\n\n`));
    this.#sink?.end([]);
  }

  #send(bytes: Buffer): boolean {
    return bytes.length === 0 ? true : (this.#sink?.data(bytes) ?? true);
  }

  /** A method, because the sink may have destroyed this stream in between. */
  #hasEnded(): boolean {
    return this.#isOver;
  }
}

/**
 * The bytes that wait for their window, as latin1: a text for each chunk takes less memory than a buffer, and no chunk
 * keeps the memory alive that it is a view of.
 */
class Held {
  #text = "";
  /** Position of the first held byte in the stream. */
  #start = 0;

  get bytes(): number {
    return this.#text.length;
  }

  add(chunk: string): void {
    this.#text += chunk;
  }

  /** Removes the bytes up to a position of the stream. */
  take(position: number): Buffer {
    const count = Math.max(0, Math.min(this.#text.length, position - this.#start));
    const taken = Buffer.from(this.#text.slice(0, count), "latin1");
    this.#text = this.#text.slice(count);
    this.#start += count;
    return taken;
  }
}
