/**
 * Body stream for a streamed response that is passed on: the bytes go out as they come, and only model and usage are
 * read. It writes at most once per read of the upstream, pauses with its reader, and reports to the ledger however the
 * stream ends.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import type { ChatFormat } from "../formats/chat-format.ts";
import { objectOf, parseObject } from "../shared/json.ts";
import type { Ending } from "../call/ledger.ts";
import type { Facts } from "../shared/usage.ts";
import { serverSentEvents, type StreamParser } from "./framing.ts";
import { BEGINS_WITH_ERROR, isDone, parserOf, readStreamError, type StreamContext } from "./stream-context.ts";
import { TextMeter } from "./text-meter.ts";
import { UsageEventFilter } from "./usage-events.ts";
import { mayCarryUsage } from "./usage-hint.ts";

export interface ScanContext extends StreamContext {
  readonly format: Pick<ChatFormat, "stream" | "client">;
  /** Whether events that only report usage are kept from the client. */
  readonly hidesUsage: boolean;
}

/** Bytes of a first event that are waited for. */
const MAX_BEGINNING = 16 * 1024;
/** A colon begins a comment. */
const COLON = 58;

/**
 * Returns what is wrong with the first event of a chat, in any format; undefined when it may be passed on.
 * @param data as latin1
 */
function faultOf(data: string): string | undefined {
  if (isDone(data)) return undefined;
  const event = parseObject(Buffer.from(data, "latin1"));
  if (event === undefined) return "the stream begins with an event that is not a JSON object";
  const isError = event["type"] === "error" || objectOf(event["error"]) !== undefined;
  return isError ? BEGINS_WITH_ERROR : undefined;
}

/**
 * Forwards the original bytes unchanged and parses only events that can carry the model or the usage. Later events that
 * cannot be parsed are not counted, but still reach the client. The stream of a chat that begins with an error, or with
 * garbage, fails; one that breaks off ends with an error event of its format, and is cut.
 */
export function scanStream(source: BodyStream, context: ScanContext): BodyStream {
  return new ScannedStream(source, context);
}

class ScannedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #context: ScanContext;
  readonly #parser: StreamParser;
  readonly #filter: UsageEventFilter | undefined;
  readonly #meter: TextMeter | undefined;
  readonly #facts: Facts = {};
  #sink: BodySink | undefined;
  #reading = true;
  /** Whether an event of the piece at hand may report usage; true as well when events are no longer read. */
  #mayReport = false;
  /** The beginning of a chat's stream, while no event is whole; undefined from the first event on. */
  #beginning: Buffer[] | undefined;
  /** What is wrong with the beginning. */
  #fault: string | undefined;
  #hasOutput = false;
  #events = 0;

  constructor(source: BodyStream, context: ScanContext) {
    this.#source = source;
    this.#context = context;
    const texts = context.ledger.countsText ? context.format.client?.texts : undefined;
    this.#meter = texts && new TextMeter((event) => texts.streamedTexts(event));
    this.#filter = context.hidesUsage ? new UsageEventFilter(context.maxEventBytes) : undefined;
    this.#parser = parserOf(context, (data) => this.#event(data), "skip");
    this.#beginning = context.format.client === undefined ? undefined : [];
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#source.read(this);
  }

  resume(): void {
    if (this.#fault === undefined) this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#close("partial");
    this.#source.destroy(error);
  }

  data(chunk: Buffer): boolean {
    this.#mayReport = !this.#reading;
    const beginning = this.#beginning;
    if (this.#reading) this.#parse(chunk);
    if (this.#fault !== undefined) return this.#refuse(this.#fault);
    if (beginning !== undefined && this.#mayWait(beginning, chunk)) return true;
    return this.#forward(
      beginning === undefined || beginning.length === 0 ? chunk : Buffer.concat([...beginning, chunk]),
    );
  }

  #forward(chunk: Buffer): boolean {
    const visible = this.#filter === undefined ? chunk : this.#filter.push(chunk, this.#mayReport);
    if (visible.length === 0) return true;
    this.#hasOutput = true;
    return this.#sink?.data(visible) ?? true;
  }

  /** Keeps the first piece of an event that may be an error; comments, which keep connections alive, go out at once. */
  #mayWait(beginning: Buffer[], chunk: Buffer): boolean {
    if (this.#beginning === undefined) return false;
    const size = beginning.reduce((sum, { length }) => sum + length, chunk.length);
    if (!this.#reading || size > MAX_BEGINNING || (beginning[0] ?? chunk)[0] === COLON) {
      this.#beginning = undefined;
      return false;
    }
    // Copied, because the owner of a chunk may use its memory again.
    beginning.push(Buffer.from(chunk));
    return true;
  }

  /** Fails the attempt, as a translated stream does: there is time for a status, and for a retry. */
  #refuse(detail: string): false {
    this.#source.destroy();
    this.#close("failed");
    this.#sink?.error(new ProxyError("llm_response_invalid", { detail }));
    return false;
  }

  end(trailers: readonly string[]): void {
    if (this.#fault !== undefined) return;
    const beginning = this.#beginning ?? [];
    if (this.#reading) this.#parse(undefined);
    if (this.#fault !== undefined) return void this.#refuse(this.#fault);
    if (beginning.length > 0) this.#forward(Buffer.concat(beginning));
    this.#close("complete");
    const rest = this.#filter?.end();
    if (rest !== undefined && rest.length > 0) this.#sink?.data(rest);
    this.#sink?.end(trailers);
  }

  /** A client that has some of the answer is told in its own format why it gets no more. */
  error(error: Error): void {
    if (this.#fault !== undefined) return;
    this.#close("partial");
    const { format, framing = serverSentEvents } = this.#context;
    if (this.#hasOutput && format.client !== undefined && framing === serverSentEvents) {
      // The blank line ends the event in whose middle the stream may have broken off.
      const event = `\n\n${format.client.printStreamError(readStreamError(error), this.#events)}`;
      this.#sink?.data(Buffer.from(event));
    }
    this.#sink?.error(error);
  }

  /** @param chunk undefined at the end */
  #parse(chunk: Buffer | undefined): void {
    try {
      if (chunk === undefined) this.#parser.end();
      else this.#parser.push(chunk);
    } catch (error) {
      if (!(error instanceof ProxyError)) throw error;
      this.#reading = false;
      this.#mayReport = true;
    }
  }

  /** @param data as latin1, as in all methods below */
  #event(data: string): void {
    if (this.#beginning !== undefined) {
      this.#beginning = undefined;
      this.#fault = faultOf(data);
    }
    if (this.#fault !== undefined) return;
    this.#events++;
    this.#context.ledger.flowing();
    if (this.#meter !== undefined) this.#context.ledger.addText(this.#meter.measure(data));
    const mayReport = mayCarryUsage(data);
    if (mayReport) this.#mayReport = true;
    if (this.#facts.model !== undefined && !mayReport) return;
    const event = parseObject(Buffer.from(data, "latin1"));
    if (event !== undefined) this.#context.format.stream(event, this.#facts);
  }

  #close(ending: Ending): void {
    this.#context.ledger.record(this.#facts);
    this.#context.ledger.settle(ending);
  }
}
