/**
 * Reads the events of a streamed answer of the Gemini API. Each event is an answer of its own with further parts: texts
 * go on where the one before ended, calls are always whole.
 */
import type { AudioPart, FilePart, ImagePart, Part, VendorPart } from "../../conversation/conversation.ts";
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import { readAnswerObjects } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { Facts, Usage } from "../../shared/usage.ts";
import type { ReadContext, StreamReader } from "../chat-format.ts";
import { readErrorObject } from "../shared/read-error.ts";
import {
  AnswerCallIds,
  isBlocked,
  hasCitations,
  readCitations,
  readAnswerParts,
  readPart,
  requireAnswer,
} from "./read-answer.ts";
import { readStop } from "./stop.ts";
import { learnFacts } from "./usage.ts";

/** More candidates than the API gives are ignored. */
const MAX_CHOICES = 128;

export function readStream(context: ReadContext): StreamReader {
  return new GeminiReader(context);
}

class GeminiReader implements StreamReader {
  readonly #context: ReadContext;
  readonly #choices = new Map<number, CandidateReader>();
  #callIds: AnswerCallIds | undefined;
  readonly #facts: Facts = {};
  /** The usage that was told last. */
  #told: Usage | undefined;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  read(event: JsonObject): readonly AnswerEvent[] {
    if (objectOf(event["error"]) !== undefined) return [{ kind: "error", error: readErrorObject(event) }];
    const events: AnswerEvent[] = [];
    const callIds = this.#start(event, events);
    learnFacts(event, this.#facts);
    for (const [at, candidate] of readAnswerObjects(event["candidates"], "candidates").entries())
      this.#candidate(candidate, at, { callIds, events });
    if (isBlocked(event)) this.#choice(0)?.stop("PROHIBITED_CONTENT", events);
    this.#usage(events);
    return events;
  }

  end(): readonly AnswerEvent[] {
    const events: AnswerEvent[] = [];
    for (const choice of this.#choices.values()) choice.stop("STOP", events);
    return events;
  }

  #start(event: JsonObject, events: AnswerEvent[]): AnswerCallIds {
    if (this.#callIds !== undefined) return this.#callIds;
    const id = stringOf(event["responseId"]) ?? "";
    requireAnswer(event);
    events.push({ kind: "start", id, model: stringOf(event["modelVersion"]) ?? this.#context.model });
    this.#callIds = new AnswerCallIds(id);
    return this.#callIds;
  }

  #candidate(
    candidate: JsonObject,
    at: number,
    { callIds, events }: { callIds: AnswerCallIds; events: AnswerEvent[] },
  ): void {
    const choice = this.#choice(countOf(candidate["index"]) ?? at);
    if (choice === undefined) return;
    for (const given of readAnswerParts(candidate)) {
      const part = readPart(given, { context: this.#context, callIds });
      if (part !== undefined) choice.part(part, events);
    }
    choice.cite(candidate, events);
    const reason = candidate["finishReason"];
    if (typeof reason === "string" && reason !== "FINISH_REASON_UNSPECIFIED") choice.stop(reason, events);
  }

  #choice(index: number): CandidateReader | undefined {
    if (index >= MAX_CHOICES) return undefined;
    let choice = this.#choices.get(index);
    if (choice === undefined) this.#choices.set(index, (choice = new CandidateReader(index)));
    return choice;
  }

  /** Tells usage that has changed, in front of a stop, where printers of all formats can use it. */
  #usage(events: AnswerEvent[]): void {
    const { usage, serviceTier } = this.#facts;
    if (usage === undefined || (this.#told !== undefined && isSameUsage(usage, this.#told))) return;
    this.#told = usage;
    const at = events.findIndex(({ kind }) => kind === "stop");
    const told: AnswerEvent = { kind: "usage", usage, ...(serviceTier === undefined ? {} : { serviceTier }) };
    events.splice(at === -1 ? events.length : at, 0, told);
  }
}

function isSameUsage(one: Usage, other: Usage): boolean {
  return (
    one.inputTokens === other.inputTokens &&
    one.outputTokens === other.outputTokens &&
    one.cachedInputTokens === other.cachedInputTokens
  );
}

/** Streams of other formats have no media, so it stays a part of this vendor. */
function mediaPart({ kind, source }: ImagePart | AudioPart | FilePart): VendorPart {
  const inlineData = source.kind === "data" ? { mimeType: source.mediaType, data: source.data } : {};
  return { kind: "vendor", vendor: "google", name: kind, value: { inlineData } };
}

class CandidateReader {
  readonly #choice: number;
  #open: { readonly kind: "text" | "reasoning"; readonly part: number } | undefined;
  #parts = 0;
  #hasCall = false;
  #hasStopped = false;

  constructor(choice: number) {
    this.#choice = choice;
  }

  part(part: Part, events: AnswerEvent[]): void {
    if (this.#hasStopped) return;
    switch (part.kind) {
      case "text":
      case "reasoning":
        return this.#text(part, events);
      case "call": {
        const { id, name, arguments: text, signature } = part;
        this.#hasCall = true;
        const at = this.#opened({ kind: "call", id, name, ...(signature === undefined ? {} : { signature }) }, events);
        events.push({ kind: "delta", choice: this.#choice, part: at, text });
        events.push({ kind: "close", choice: this.#choice, part: at });
        return;
      }
      case "vendor":
        this.#whole(part, events);
        return;
      case "image":
      case "audio":
      case "file":
        this.#whole(mediaPart(part), events);
        return;
      default:
    }
  }

  cite(candidate: JsonObject, events: AnswerEvent[]): void {
    if (this.#open?.kind !== "text" || !hasCitations(candidate)) return;
    for (const citation of readCitations(candidate))
      events.push({ kind: "citation", choice: this.#choice, part: this.#open.part, citation });
  }

  /** @param reason as the provider wrote it */
  stop(reason: string, events: AnswerEvent[]): void {
    if (this.#hasStopped) return;
    this.#hasStopped = true;
    this.#close(events);
    const stop = { reason: readStop(reason, this.#hasCall) };
    events.push({ kind: "stop", choice: this.#choice, stop });
  }

  #text(part: Part & { kind: "text" | "reasoning" }, events: AnswerEvent[]): void {
    if (this.#open?.kind !== part.kind) {
      const at = this.#opened({ kind: part.kind }, events);
      this.#open = { kind: part.kind, part: at };
    }
    const place = { choice: this.#choice, part: this.#open.part };
    if (part.text !== "") events.push({ kind: "delta", ...place, text: part.text });
    if (part.signature === undefined) return;
    events.push({ kind: "signature", ...place, signature: part.signature });
    // What follows is a part of its own with a signature of its own.
    this.#close(events);
  }

  #whole(opened: OpenedPart, events: AnswerEvent[]): void {
    events.push({ kind: "close", choice: this.#choice, part: this.#opened(opened, events) });
  }

  #opened(opened: OpenedPart, events: AnswerEvent[]): number {
    this.#close(events);
    const part = this.#parts++;
    events.push({ kind: "open", choice: this.#choice, part, opened });
    return part;
  }

  #close(events: AnswerEvent[]): void {
    if (this.#open === undefined) return;
    events.push({ kind: "close", choice: this.#choice, part: this.#open.part });
    this.#open = undefined;
  }
}
