/**
 * The timestamp of a log line, RFC 3339 in UTC with microseconds. The wall clock has milliseconds only; the monotonic
 * clock supplies the remaining digits. The text of a second is cached.
 */

export interface Clocks {
  /** Wall clock, whole milliseconds. */
  readonly wallMs: () => number;
  /** Monotonic clock. */
  readonly steadyMs: () => number;
  /** Wall-clock time, with all digits, of the moment when the monotonic clock was zero. */
  readonly originMs: number;
}

const SYSTEM: Clocks = {
  wallMs: Date.now,
  steadyMs: performance.now.bind(performance),
  originMs: performance.timeOrigin,
};

export class LineClock {
  readonly #clocks: Clocks;
  #originMs: number;
  #second = Number.NaN;
  #text = "";

  constructor(clocks: Clocks = SYSTEM) {
    this.#clocks = clocks;
    this.#originMs = clocks.originMs;
  }

  now(): string {
    const wallMs = this.#clocks.wallMs();
    const steadyMs = this.#clocks.steadyMs();
    let within = this.#originMs + steadyMs - wallMs;
    if (!(within >= 0 && within < 1)) {
      // The wall clock was set, or the clocks have drifted apart: keep the digits within the millisecond of the wall
      // clock and realign the origin.
      within = within < 0 ? 0 : LAST_OF_MILLISECOND;
      this.#originMs = wallMs + within - steadyMs;
    }
    const second = Math.trunc(wallMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toISOString().slice(0, 20);
    }
    const microseconds = (wallMs - second * 1000) * 1000 + Math.trunc(within * 1000);
    return `${this.#text}${String(microseconds).padStart(6, "0")}Z`;
  }
}

const LAST_OF_MILLISECOND = 0.999;
