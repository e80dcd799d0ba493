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
import type { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { FormatTexts, GuardedText, StreamedText } from "../formats/guarded-text.ts";
import { parseObject } from "../shared/json.ts";
import { Repetition } from "../stream/repetition.ts";
import { SseParser } from "../stream/sse.ts";
import type { GuardChain } from "./chain.ts";

const WINDOW_BYTES = 1_024;
const OVERLAP = 256;
/** A provider that opens more choices and parts than any vendor has is broken or hostile. */
const MAX_LANES = 1_024;
const FAILED = "Content blocked by guardrail policy";
const GUARD_ERRORS: ReadonlySet<string> = new Set(["guard_failed", "guard_mask_invalid"]);

export interface WindowContext {
  readonly chain: GuardChain;
  readonly texts: FormatTexts;
  readonly exchange: RoutedExchange;
  readonly headers: HeaderList;
  readonly limitBytes: number;
}

export function guardStream(source: BodyStream, context: WindowContext): BodyStream {
  return new GuardedStream(source, context);
}

/** The text of one choice, part or call. */
class Lane {
  readonly scope: GuardedText["scope"];
  #window = "";
  #hasNews = false;
  #length = 0;
  /** Hash of all text so far (FNV-1a), to recognise events that repeat it. */
  #hash = FNV_BASIS;

  constructor(scope: GuardedText["scope"]) {
    this.scope = scope;
  }

  get hasNews(): boolean {
    return this.#hasNews;
  }

  add(text: string): void {
    this.#window += text;
    this.#hasNews = true;
    this.#length += text.length;
    this.#hash = hashOf(text, this.#hash);
  }

  /** Returns the text of the window, and keeps the overlap for the next one. */
  close(): string {
    const window = this.#window;
    this.#window = window.slice(-OVERLAP);
    this.#hasNews = false;
    return window;
  }

  isAll(text: string): boolean {
    return this.#length === text.length && this.#hash === hashOf(text, FNV_BASIS);
  }
}

const FNV_BASIS = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

function hashOf(text: string, basis: number): number {
  let hash = basis;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME);
  return hash;
}

class GuardedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #context: WindowContext;
  readonly #parser: SseParser;
  readonly #lanes = new Map<string, Lane>();
  readonly #repetition = new Repetition();
  /** The lane of the event that the repetition has learned. */
  #repeated: Lane | undefined;
  readonly #held: Held = new Held();
  #freshBytes = 0;
  #sink: BodySink | undefined;
  #isChecking = false;
  #isOver = false;
  /** Trailers of the source, once it has ended. */
  #trailers: readonly string[] | undefined;

  constructor(source: BodyStream, context: WindowContext) {
    this.#source = source;
    this.#context = context;
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
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#source.destroy();
      this.error(error as Error);
      return false;
    }
    this.#held.add(chunk);
    const isFull = this.#freshBytes >= WINDOW_BYTES || this.#held.bytes >= this.#context.limitBytes;
    if (isFull && !this.#isChecking) this.#check(this.#parser.settledBytes);
    return !this.#isChecking && !this.#isOver;
  }

  end(trailers: readonly string[]): void {
    if (this.#isOver) return;
    this.#trailers = trailers;
    if (!this.#isChecking) this.#checkRest(trailers);
  }

  /** What is held was not checked, so it is not sent before the stream breaks off. */
  error(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink?.error(error);
  }

  /** @param data as latin1 */
  #event(data: string): void {
    const literal = this.#repetition.answer(data);
    if (literal !== undefined && this.#repeated !== undefined) return this.#add(this.#repeated, literal.slice(1, -1));
    const event = parseObject(Buffer.from(data, "latin1"));
    const texts = event === undefined ? [] : this.#context.texts.streamedTexts(event);
    const lanes = texts.map((text) => this.#take(text));
    const [text] = texts;
    this.#repeated = texts.length === 1 && text?.isRepeated !== true ? lanes[0] : undefined;
    this.#repetition.learn(
      this.#repeated === undefined ? undefined : text?.text,
      data,
      JSON.stringify(text?.text ?? ""),
    );
  }

  /** @returns the lane that took the text; undefined when no guard looks at it */
  #take({ lane: name, scope, text, isRepeated }: StreamedText): Lane | undefined {
    if (!this.#context.chain.reads(scope)) return undefined;
    if (isRepeated === true && this.#hasSeen(text)) return undefined;
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      if (this.#lanes.size === MAX_LANES)
        throw new ProxyError("llm_response_invalid", { detail: `a stream of more than ${MAX_LANES} parts` });
      this.#lanes.set(name, (lane = new Lane(scope)));
    }
    this.#add(lane, text);
    return lane;
  }

  #hasSeen(text: string): boolean {
    for (const lane of this.#lanes.values()) if (lane.isAll(text)) return true;
    return false;
  }

  #add(lane: Lane, text: string): void {
    lane.add(text);
    this.#freshBytes += Buffer.byteLength(text);
  }

  /** Checks the window. @param settledBytes what is sent when it passes */
  #check(settledBytes: number): void {
    this.#isChecking = true;
    this.#freshBytes = 0;
    this.#runGuards().then(
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
    this.#runGuards().then(
      (message) => this.#checkedRest(message, trailers),
      (error: unknown) => this.#failed(error),
    );
  }

  /** @returns the message of a rejection */
  async #runGuards(): Promise<string | undefined> {
    const { chain, exchange, headers } = this.#context;
    const texts: GuardedText[] = [];
    for (const lane of this.#lanes.values()) {
      if (!lane.hasNews) continue;
      const window = lane.close();
      texts.push(streamedText(lane.scope, lane.scope === "ToolInput" ? unescapeJson(window) : window));
    }
    if (texts.length === 0) return undefined;
    const said = texts.filter(({ scope }) => scope === "Messages").map(({ text }) => text);
    const result = await chain.run({
      exchange,
      texts: () => texts,
      messages: () => [],
      choices: () => [streamedText("Messages", said.join("\n"))],
      answerHeaders: headers,
      request: undefined,
      applyMask: undefined,
    });
    return result.rejected ? (result.rejection?.body ?? result.response.message) : undefined;
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
    if (error instanceof ProxyError && GUARD_ERRORS.has(error.code)) return this.#block(FAILED);
    this.#source.destroy();
    this.error(error instanceof Error ? error : new ProxyError("internal", { cause: error }));
  }

  #block(message: string): void {
    this.#isOver = true;
    this.#source.destroy();
    const error = { type: "guardrail_blocked", code: "guardrail_intervention", message };
    this.#sink?.data(Buffer.from(`data: ${JSON.stringify({ error })}\n\n`));
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

/** The bytes that wait for their window. */
class Held {
  #chunks: Buffer[] = [];
  /** Position of the first held byte in the stream. */
  #start = 0;
  bytes = 0;

  add(chunk: Buffer): void {
    // Copied, because the owner of a chunk may use its memory again.
    this.#chunks.push(Buffer.from(chunk));
    this.bytes += chunk.length;
  }

  /** Removes the bytes up to a position of the stream. */
  take(position: number): Buffer {
    const all = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    const count = Math.max(0, Math.min(all.length, position - this.#start));
    const rest = all.subarray(count);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#start += count;
    this.bytes = rest.length;
    return all.subarray(0, count);
  }
}

function streamedText(scope: GuardedText["scope"], text: string): GuardedText {
  return { scope, role: "assistant", text, isSigned: false, replace: () => undefined };
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(.))/g;
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Resolves the escapes of JSON text that comes in pieces, which could hide a match. */
function unescapeJson(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replaceAll(ESCAPE, (_all, hex: string | undefined, letter: string | undefined) =>
    hex === undefined ? (ESCAPES[letter ?? ""] ?? letter ?? "") : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
