/**
 * Measures how long a change takes to reach live traffic: it requests the newest route on one connection until the
 * response shows the change. When changes come faster, it skips those in between; each figure is the time from the
 * write of one change to its first response.
 */
import { Agent, get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

const CHANGE_LIMIT_MS = 30_000;
/** One request per millisecond is precise enough and leaves the processor to the gateway. */
const PAUSE_MS = 1;

export interface Written {
  readonly path: string;
  /** Status of the response once the change is in force. */
  readonly status: number;
  /** Time of the write, as performance.now() returns it. */
  readonly atMs: number;
}

export class Probe {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(port: number) {
    this.#port = port;
  }

  /** @returns milliseconds from the write to the first response that shows it @throws Error when none does */
  async live({ path, status, atMs }: Written): Promise<number> {
    while ((await this.#statusOf(path)) !== status) {
      if (performance.now() - atMs > CHANGE_LIMIT_MS) throw new Error(`${path} did not become ${status}`);
      await delay(PAUSE_MS);
    }
    return performance.now() - atMs;
  }

  /** Measures the newest write again and again, until writing is over. */
  async follow(newest: () => Written | undefined, isOver: () => boolean): Promise<number[]> {
    const milliseconds: number[] = [];
    let seen: Written | undefined;
    for (;;) {
      const over = isOver();
      const written = newest();
      if (written === undefined || written === seen) {
        if (over) return milliseconds;
        await delay(PAUSE_MS);
        continue;
      }
      seen = written;
      milliseconds.push(await this.live(written));
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #statusOf(path: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      get({ host: "127.0.0.1", port: this.#port, path, agent: this.#agent }, (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode));
      }).on("error", reject);
    });
  }
}
