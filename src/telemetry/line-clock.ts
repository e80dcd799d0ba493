/** The time of a line, RFC 3339 in UTC to the microsecond: the wall clock, with the digits that it lacks from the other one. */

export interface Clocks {
  /** Wall clock, whole milliseconds. */
  readonly wallMs: () => number;
  /** Only goes forward. */
  readonly steadyMs: () => number;
}

const SYSTEM: Clocks = { wallMs: Date.now, steadyMs: performance.now.bind(performance) };

export class LineClock {
  readonly #clocks: Clocks;
  #offsetMs = 0;
  #second = Number.NaN;
  #text = "";

  constructor(clocks: Clocks = SYSTEM) {
    this.#clocks = clocks;
  }

  now(): string {
    const wallMs = this.#clocks.wallMs();
    const steadyMs = this.#clocks.steadyMs();
    // Within the millisecond that the wall clock says; else one of the two was set, or they drifted apart.
    const within = steadyMs + this.#offsetMs - wallMs;
    if (!(within >= 0 && within < 1)) this.#offsetMs = wallMs - steadyMs;
    const microseconds = Math.trunc(Math.max(0, steadyMs + this.#offsetMs - wallMs) * 1000);
    const second = Math.trunc(wallMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toISOString().slice(0, 20);
    }
    return `${this.#text}${String((wallMs - second * 1000) * 1000 + microseconds).padStart(6, "0")}Z`;
  }
}
