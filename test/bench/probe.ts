/**
 * How long a change takes to reach live traffic: the newest route is asked for on one connection until it answers. While
 * changes come faster than they are seen, those in between are left out; each figure is one change from write to answer.
 */
import { Agent, get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

const CHANGE_LIMIT_MS = 30_000;
/** A question per millisecond is exact enough and leaves the machine to what is measured. */
const PAUSE_MS = 1;

export interface Written {
  readonly path: string;
  /** What it answers once the change is in force. */
  readonly status: number;
  /** By performance.now(). */
  readonly atMs: number;
}

export class Probe {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(port: number) {
    this.#port = port;
  }

  /** @returns milliseconds from the write to the first answer that shows it. @throws Error when none comes */
  async live({ path, status, atMs }: Written): Promise<number> {
    while ((await this.#statusOf(path)) !== status) {
      if (performance.now() - atMs > CHANGE_LIMIT_MS) throw new Error(`${path} did not become ${status}`);
      await delay(PAUSE_MS);
    }
    return performance.now() - atMs;
  }

  /** Follows the newest of what is written until nothing more is. */
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
