/**
 * The text of a streamed answer that response guards have not seen yet, in lanes: one for each choice, part and call, so
 * that no border between two of them, and none between two windows, hides a match that fits into the overlap. Streams of
 * events (window.ts) and sessions over WebSocket (session.ts) are guarded with it.
 */
import { createHash, type Hash } from "node:crypto";
import type { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { RoutedExchange } from "../../exchange/exchange.ts";
import type { GuardedText, StreamedText } from "../formats/guarded-text.ts";
import type { GuardChain } from "./chain.ts";

const WINDOW_BYTES = 1_024;
const OVERLAP = 256;
/** A provider that opens more choices and parts than any vendor has is broken or hostile. */
const MAX_LANES = 1_024;
/** Stands for the message of a guard that has failed. */
export const FAILED = "Content blocked by guardrail policy";
const GUARD_ERRORS: ReadonlySet<string> = new Set(["guard_failed", "guard_mask_invalid"]);

export interface WindowGuards {
  readonly chain: GuardChain;
  readonly exchange: RoutedExchange;
  /** Headers of the provider's answer. */
  readonly headers: HeaderList;
}

/** Returns the error that a client gets in place of what was withheld. */
export function blockedError(message: string): { type: string; code: string; message: string } {
  return { type: "guardrail_blocked", code: "guardrail_intervention", message };
}

/** The text of one choice, part or call. */
export class Lane {
  readonly scope: GuardedText["scope"];
  #window = "";
  #hasNews = false;
  /** Length of the overlap that the window begins with, which the digest has taken already. */
  #overlap = 0;
  #length = 0;
  #wasRejected = false;
  /**
   * Takes all text before the window, to recognise events that repeat the whole. The text itself would keep an answer in
   * memory as long as its stream; a short hash would let a provider choose a second text that passes for the first one.
   */
  #digest: Hash | undefined;

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
  }

  /** Returns the text of the window, and keeps the overlap for the next one. */
  close(): string {
    const window = this.#window;
    this.#digest = addText(this.#digest ?? createHash(DIGEST), this.#news);
    this.#window = window.slice(-OVERLAP);
    this.#overlap = this.#window.length;
    this.#hasNews = false;
    return window;
  }

  /**
   * Forgets the text, which is withheld: it makes no match with what follows, and is checked again wherever an event
   * repeats it.
   */
  reject(): void {
    this.#window = "";
    this.#overlap = 0;
    this.#wasRejected = true;
  }

  /** Tells whether a text is all that the lane has taken. */
  isAll(text: string): boolean {
    if (this.#wasRejected || this.#length !== text.length) return false;
    if (this.#digest === undefined) return this.#window === text;
    const all = addText(this.#digest.copy(), this.#news).digest();
    return all.equals(addText(createHash(DIGEST), text).digest());
  }

  /** The text of the window that is not part of the overlap. */
  get #news(): string {
    return this.#window.slice(this.#overlap);
  }
}

const DIGEST = "sha256";

/** Adds code units, so that two texts with different lone surrogates stay different. */
function addText(digest: Hash, text: string): Hash {
  return digest.update(text, "utf16le");
}

export class TextWindows {
  readonly #guards: WindowGuards;
  readonly #lanes = new Map<string, Lane>();
  #freshBytes = 0;

  constructor(guards: WindowGuards) {
    this.#guards = guards;
  }

  /** Whether there is enough new text for a check. */
  get isFull(): boolean {
    return this.#freshBytes >= WINDOW_BYTES;
  }

  /**
   * @returns the lane that took the text, now or before, and has to be checked; undefined when there is nothing to check
   * @throws ProxyError llm_response_invalid for more lanes than any vendor opens
   */
  take({ lane: name, scope, text, isRepeated }: StreamedText): Lane | undefined {
    if (!this.#guards.chain.reads(scope)) return undefined;
    const seen = isRepeated === true ? this.#laneOf(scope, text) : undefined;
    // An event that repeats what is still to be checked is withheld with it, whatever answer or part it claims to be of.
    if (seen !== undefined) return seen.hasNews ? seen : undefined;
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      if (this.#lanes.size === MAX_LANES)
        throw new ProxyError("llm_response_invalid", { detail: `a stream of more than ${MAX_LANES} parts` });
      this.#lanes.set(name, (lane = new Lane(scope)));
    }
    this.add(lane, text);
    return lane;
  }

  add(lane: Lane, text: string): void {
    lane.add(text);
    this.#freshBytes += Buffer.byteLength(text);
  }

  /** Forgets the lanes of an owner (its name and a space begin theirs), none of which may be waiting for a check. */
  clear(owner: string): void {
    for (const name of this.#lanes.keys()) if (name.startsWith(`${owner} `)) this.#lanes.delete(name);
  }

  /**
   * Shows the guards what is new.
   * @returns the message of a rejection; undefined when the text passes
   */
  async check(): Promise<string | undefined> {
    this.#freshBytes = 0;
    const lanes = [...this.#lanes.values()].filter(({ hasNews }) => hasNews);
    if (lanes.length === 0) return undefined;
    const message = await this.#ask(lanes);
    if (message !== undefined) for (const lane of lanes) lane.reject();
    return message;
  }

  async #ask(lanes: readonly Lane[]): Promise<string | undefined> {
    const { chain, exchange, headers } = this.#guards;
    const texts = lanes.map((lane) => {
      const window = lane.close();
      return streamedText(lane.scope, lane.scope === "ToolInput" ? unescapeJson(window) : window);
    });
    const said = texts.filter(({ scope }) => scope === "Messages").map(({ text }) => text);
    try {
      const result = await chain.run({
        exchange,
        texts: () => texts,
        messages: () => [],
        choices: () => [streamedText("Messages", said.join("\n"))],
        answerHeaders: headers,
        request: undefined,
        onMask: "ignore",
      });
      return result.rejected ? (result.rejection?.body ?? result.response.message) : undefined;
    } catch (error) {
      if (isGuardError(error)) return FAILED;
      throw error;
    }
  }

  /** Returns the lane whose whole text is this one. */
  #laneOf(scope: GuardedText["scope"], text: string): Lane | undefined {
    for (const lane of this.#lanes.values()) if (lane.scope === scope && lane.isAll(text)) return lane;
    return undefined;
  }
}

/** Tells whether a guard has failed, which withholds what it should have looked at. */
export function isGuardError(error: unknown): boolean {
  return error instanceof ProxyError && GUARD_ERRORS.has(error.code);
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
