/** Waiting times between attempts: doubling up to a limit, with jitter so that a fleet does not come back in step. */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** In [0, 1). */
  readonly random?: () => number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  #attempts = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Milliseconds to wait before the next attempt: between half of the step and the whole of it. */
  next(): number {
    const { firstMs, maxMs, random = Math.random } = this.#options;
    const step = Math.min(maxMs, firstMs * 2 ** this.#attempts);
    this.#attempts += 1;
    return step / 2 + (step / 2) * random();
  }

  reset(): void {
    this.#attempts = 0;
  }
}
