/** Starts a data plane of several threads for one test, as `gwproxy up --workers` does. */
import type { Resource } from "../../../src/ir/resource.ts";
import type { WorkerThread } from "../../../src/proxy/workers/worker-thread.ts";
import { createWorkers, type Workers, type WorkersOptions } from "../../../src/proxy/workers/workers.ts";
import { createMetrics, type Metrics } from "../../../src/telemetry/metrics.ts";
import { bind, rawClient, type RawClient } from "./data-plane.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { recordingLog } from "./silent-log.ts";

export interface WorkersPlane {
  readonly workers: Workers;
  readonly metrics: Metrics;
  readonly port: number;
  readonly url: string;
  /** Log lines of the main thread. */
  readonly log: readonly string[];
  /** Output of the workers, in batches of lines. */
  readonly written: readonly string[];
  set(...resources: Resource[]): Promise<void>;
  /** Resolves with the line of the main thread's log that contains the text. */
  logged(text: string): Promise<string>;
}

export async function startWorkers(
  context: Pick<ProofContext, "after">,
  resources: Resource[],
  options: Partial<
    Pick<WorkersOptions, "count" | "clock" | "ports" | "spiffeEndpoint" | "stuckAfterMs" | "memoryBytes">
  > = {},
): Promise<WorkersPlane> {
  const { log, lines } = recordingLog();
  const written: string[] = [];
  const metrics = createMetrics("test");
  const workers = createWorkers({
    count: 2,
    bindAddress: "127.0.0.1",
    version: "test",
    log,
    filter: { level: "info", modules: new Map() },
    write: (text) => Promise.resolve(void written.push(text)),
    writeAccessLog: (text) => Promise.resolve(void written.push(text)),
    logFormat: "json",
    ports: () => 0,
    metrics,
    // A test's own clock does not measure how long threads take, so the detection of stuck threads is off.
    ...(options.clock === undefined ? {} : { stuckAfterMs: 0 }),
    ...options,
  });
  context.after(() => workers.close());
  const set = async (...changed: Resource[]): Promise<void> => {
    const { refused } = await workers.apply({ set: changed, removed: [] });
    if (refused.length > 0) throw new Error(`refused: ${JSON.stringify(refused)}`);
  };
  await set(bind(), ...resources);
  const port = workers.listeners()[0]?.boundPort ?? 0;
  const logged = async (text: string): Promise<string> => {
    for (;;) {
      const line = lines.find((each) => each.includes(text));
      if (line !== undefined) return line;
      await new Promise(setImmediate);
    }
  };
  return { workers, metrics, port, url: `http://127.0.0.1:${port}`, log: lines, written, set, logged };
}

/** Returns one of the serving threads. */
export function oneOf(workers: Workers): WorkerThread {
  const [thread] = workers.threads;
  if (thread === undefined) throw new Error("no thread serves");
  return thread;
}

/** Opens enough connections that every thread gets some, each with one answered request. */
export async function connections(context: Pick<ProofContext, "after">, port: number): Promise<RawClient[]> {
  const clients = Array.from({ length: 40 }, () => rawClient(port, "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"));
  context.after(() => {
    for (const { socket } of clients) socket.destroy();
  });
  await Promise.all(clients.map((client) => client.until(/\r\n\r\n/)));
  return clients;
}
