/**
 * How much a client of HTTP/2 may ask for in vain (runtime/proxying.md 1): requests that it resets before they are answered
 * ("rapid reset"), and frames that only make us answer. Counted in windows of ten seconds.
 */

const WINDOW_MS = 10_000;
const MAX_RESETS = 100;
const MAX_IDLE_FRAMES = 500;

export class ResetFloodGuard {
  #sinceMs: number;
  #resets = 0;
  #answered = 0;
  #idleFrames = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** A request ended without its answer. @returns false when the client has gone too far */
  reset(nowMs: number): boolean {
    this.#turn(nowMs);
    this.#resets++;
    return this.#bearable;
  }

  /** A request got all of its answer. */
  answered(nowMs: number): boolean {
    this.#turn(nowMs);
    this.#answered++;
    return true;
  }

  idleFrame(nowMs: number): boolean {
    this.#turn(nowMs);
    this.#idleFrames++;
    return this.#bearable;
  }

  /** A client that cancels much but uses more is an honest one: a player that seeks, a page that is left. */
  get #bearable(): boolean {
    if (this.#idleFrames > MAX_IDLE_FRAMES) return false;
    return this.#resets <= MAX_RESETS || this.#answered >= this.#resets;
  }

  #turn(nowMs: number): void {
    if (nowMs - this.#sinceMs < WINDOW_MS) return;
    this.#sinceMs = nowMs;
    this.#resets = 0;
    this.#answered = 0;
    this.#idleFrames = 0;
  }
}
