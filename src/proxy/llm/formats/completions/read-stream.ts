/** Reads the chunks of a streamed chat completion. */
import type { AnswerEvent, OpenedPart } from "../../conversation/events.ts";
import { readAnswerObject, readAnswerObjects, readAnswerText } from "../../shared/answer-fields.ts";
import { countOf, objectOf, stringOf, type JsonObject } from "../../shared/json.ts";
import type { ReadContext, StreamReader } from "../chat-format.ts";
import { readErrorObject } from "../shared/read-error.ts";
import { callId, reasoningText, stopReason, textOf } from "./read-answer.ts";
import { readThoughtSignature } from "./thought-signature.ts";
import { readUsage } from "./usage.ts";

/** A call whose name has not arrived yet is held with its arguments. */
interface Call {
  part: number | undefined;
  id: string;
  name: string;
  held: string;
  signed: ReturnType<typeof readThoughtSignature>;
}

/** More choices than any provider gives, and more calls than any model makes, are ignored. */
const MAX_CHOICES = 128;
const MAX_CALLS = 1024;

export function readStream({ model, toolNames }: ReadContext): StreamReader {
  const choices = new Map<number, ChoiceReader>();
  let hasStarted = false;
  return {
    read(chunk) {
      if (chunk["error"] !== undefined && chunk["error"] !== null)
        return [{ kind: "error", error: readErrorObject(chunk) }];
      const events: AnswerEvent[] = [];
      if (!hasStarted) {
        hasStarted = true;
        events.push({ kind: "start", id: stringOf(chunk["id"]) ?? "", model: stringOf(chunk["model"]) ?? model });
      }
      for (const [at, choice] of readAnswerObjects(chunk["choices"], "choices").entries()) {
        const index = countOf(choice["index"]) ?? at;
        if (index >= MAX_CHOICES) continue;
        let reader = choices.get(index);
        if (reader === undefined) choices.set(index, (reader = new ChoiceReader(index, toolNames)));
        reader.read(choice, events);
      }
      const usage = readUsage(objectOf(chunk["usage"]));
      const serviceTier = stringOf(chunk["service_tier"]);
      if (usage !== undefined)
        events.push({ kind: "usage", usage, ...(serviceTier === undefined ? {} : { serviceTier }) });
      return events;
    },
    end() {
      const events: AnswerEvent[] = [];
      for (const reader of choices.values()) reader.end(events);
      return events;
    },
  };
}

class ChoiceReader {
  readonly #choice: number;
  readonly #toolNames: ReadContext["toolNames"];
  readonly #calls = new Map<number, Call>();
  #callCount = 0;
  /** The text, reasoning or refusal that is open. */
  #open: { readonly kind: "text" | "reasoning" | "refusal"; readonly part: number } | undefined;
  #parts = 0;
  #hasCall = false;
  #hasStopped = false;

  constructor(choice: number, toolNames: ReadContext["toolNames"]) {
    this.#choice = choice;
    this.#toolNames = toolNames;
  }

  read(choice: JsonObject, events: AnswerEvent[]): void {
    if (this.#hasStopped) return;
    const delta = readAnswerObject(choice["delta"], "delta") ?? {};
    this.#text("reasoning", reasoningText(delta), events);
    this.#text("text", textOf(delta["content"]), events);
    this.#text("refusal", readAnswerText(delta["refusal"], "refusal"), events);
    readAnswerObjects(delta["tool_calls"], "tool_calls").forEach((call, at) => this.#call(call, at, events));
    const legacy = objectOf(delta["function_call"]);
    if (legacy !== undefined) this.#call({ function: legacy }, 0, events);
    const reason = choice["finish_reason"];
    if (typeof reason !== "string") return;
    this.#closeAll(events);
    this.#hasStopped = true;
    events.push({ kind: "stop", choice: this.#choice, stop: { reason: stopReason(reason, this.#hasCall) } });
  }

  end(events: AnswerEvent[]): void {
    if (this.#hasStopped) return;
    this.#hasStopped = true;
    this.#closeAll(events);
    events.push({ kind: "stop", choice: this.#choice, stop: { reason: this.#hasCall ? "calls" : "end" } });
  }

  #text(kind: "text" | "reasoning" | "refusal", text: string, events: AnswerEvent[]): void {
    if (text === "") return;
    if (this.#open?.kind !== kind) {
      this.#closeAll(events);
      this.#open = { kind, part: this.#openPart({ kind }, events) };
    }
    events.push({ kind: "delta", choice: this.#choice, part: this.#open.part, text });
  }

  #call(given: JsonObject, at: number, events: AnswerEvent[]): void {
    const index = countOf(given["index"]) ?? at;
    const custom = readAnswerObject(given["custom"], "custom");
    const made = custom ?? readAnswerObject(given["function"], "function") ?? {};
    let call = this.#calls.get(index);
    if (call !== undefined && isAnotherCall(given, made, call)) {
      this.#closeCall(call, events);
      call = undefined;
    }
    if (call === undefined) {
      if (this.#callCount++ >= MAX_CALLS) return;
      call = { part: undefined, id: callId(given, index), name: "", held: "", signed: readThoughtSignature(given) };
      this.#calls.set(index, call);
    }
    const text = readAnswerText(made[custom === undefined ? "arguments" : "input"], "arguments");
    if (call.part !== undefined) return this.#arguments(call.part, text, events);
    call.name += readAnswerText(made["name"], "name");
    call.held += text;
    if (call.name !== "") this.#openCall(call, custom !== undefined, events);
  }

  #openCall(call: Call, isFreeText: boolean, events: AnswerEvent[]): void {
    this.#closeText(events);
    this.#hasCall = true;
    const { id, held, signed } = call;
    const name = this.#toolNames?.get(call.name) ?? call.name;
    call.part = this.#openPart({ kind: "call", id, name, ...(isFreeText ? { isFreeText } : {}), ...signed }, events);
    this.#arguments(call.part, held, events);
  }

  #arguments(part: number, text: string, events: AnswerEvent[]): void {
    if (text !== "") events.push({ kind: "delta", choice: this.#choice, part, text });
  }

  #openPart(opened: OpenedPart, events: AnswerEvent[]): number {
    const part = this.#parts++;
    events.push({ kind: "open", choice: this.#choice, part, opened });
    return part;
  }

  #closeText(events: AnswerEvent[]): void {
    if (this.#open === undefined) return;
    events.push({ kind: "close", choice: this.#choice, part: this.#open.part });
    this.#open = undefined;
  }

  /** Closes what is open. */
  #closeAll(events: AnswerEvent[]): void {
    this.#closeText(events);
    for (const [index, call] of this.#calls) {
      if (call.part === undefined) continue;
      this.#closeCall(call, events);
      this.#calls.delete(index);
    }
  }

  #closeCall({ part }: Call, events: AnswerEvent[]): void {
    if (part !== undefined) events.push({ kind: "close", choice: this.#choice, part });
  }
}

/** Some servers give parallel calls no index, or the same one; each of them has its own identifier and name. */
function isAnotherCall(given: JsonObject, made: JsonObject, { id, part }: Call): boolean {
  const own = stringOf(given["id"]) ?? "";
  return part !== undefined && own !== "" && own !== id && (stringOf(made["name"]) ?? "") !== "";
}
