/** A continuous load: each connection requests one path after the other and checks every answer. */
import assert from "node:assert/strict";
import { Agent, request } from "node:http";

/** A path that must answer 200, and the expected header `x-upstream`. */
export interface Promised {
  readonly path: string;
  readonly upstream: string;
}

export interface SteadyLoad {
  /** Resolves when every connection has finished a request that it began after this call. */
  turned(): Promise<void>;
  /**
   * Ends the load.
   * @throws the first failed check or request
   */
  stop(): Promise<LoadSummary>;
}

interface LoadSummary {
  readonly answers: number;
  /** Number of TCP connections that were opened. */
  readonly opened: number;
}

interface Turn {
  readonly begunAfter: number;
  readonly done: () => void;
}

export function startSteadyLoad(url: string, promised: readonly Promised[], connections: number): SteadyLoad {
  let [answers, opened, clock] = [0, 0, 0];
  let stopped = false;
  const agents = Array.from({ length: connections }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const turns = agents.map((): Turn[] => []);
  const failures: unknown[] = [];

  /**
   * Sends the requests of one connection. `clock` numbers all requests in order of their start, so that `turned` can
   * wait for a request of each connection that began after the call.
   */
  const run = async (agent: Agent, waiting: Turn[], first: number): Promise<void> => {
    for (let index = first; !stopped; index += 1) {
      const { path, upstream } = promised[index % promised.length] as Promised; // the index is within the list
      const begun = (clock += 1);
      const answer = await ask(url + path, agent);
      assert.deepEqual(answer.summary, { path, status: 200, upstream });
      answers += 1;
      if (!answer.reused) opened += 1;
      for (const turn of waiting.splice(0)) {
        if (begun > turn.begunAfter) turn.done();
        else waiting.push(turn);
      }
    }
  };
  const running = agents.map((agent, number) => {
    const waiting = turns[number] as Turn[]; // one list per agent
    return run(agent, waiting, number)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => {
        // A connection that has ended does no more requests, so its waiters are released.
        for (const turn of waiting.splice(0)) turn.done();
      });
  });
  const rethrow = (): void => {
    if (failures.length > 0) throw failures[0];
  };

  return {
    async turned() {
      rethrow();
      const begunAfter = clock;
      await Promise.all(turns.map((waiting) => new Promise<void>((done) => waiting.push({ begunAfter, done }))));
      rethrow();
    },
    async stop() {
      stopped = true;
      await Promise.all(running);
      for (const agent of agents) agent.destroy();
      rethrow();
      return { answers, opened };
    },
  };
}

interface Asked {
  readonly summary: { readonly path: string; readonly status: number; readonly upstream: unknown };
  readonly reused: boolean;
}

function ask(url: string, agent: Agent): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent }, (response) => {
      response.resume();
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          summary: {
            path: outgoing.path,
            status: response.statusCode ?? 0,
            upstream: response.headers["x-upstream"],
          },
          reused: outgoing.reusedSocket,
        }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}
