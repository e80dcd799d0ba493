/**
 * Counts wasted work per HTTP/2 connection, in fixed windows of ten seconds; the HTTP/2 server closes the connection
 * when a limit is exceeded. Two attacks are covered: rapid reset (CVE-2023-44487), requests that are reset before their
 * response, and floods of PING or SETTINGS frames (CVE-2019-9512, CVE-2019-9515), which only cause acknowledgements.
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

  /** Counts a request that ended without a response. @returns false when the client has exceeded a limit */
  reset(nowMs: number): boolean {
    this.#turn(nowMs);
    this.#resets++;
    return this.#isTolerable;
  }

  /** Counts a request that got its response. */
  answered(nowMs: number): boolean {
    this.#turn(nowMs);
    this.#answered++;
    return true;
  }

  idleFrame(nowMs: number): boolean {
    this.#turn(nowMs);
    this.#idleFrames++;
    return this.#isTolerable;
  }

  /**
   * Tolerates many resets from a client that completes at least as many requests, such as a video player that seeks.
   */
  get #isTolerable(): boolean {
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
