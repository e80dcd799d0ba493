/**
 * What an open stream takes: 1,000 clients each hold one, the mock sends an event to all of them every so often, and the
 * memory of the process grows by so much between before the first stream and when most events of all have come. Each time
 * the heap is collected first: what the engine keeps for later is no stream's.
 */
import { Agent, request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readBodyFile } from "./bodies.ts";
import { heapMiB, inspected } from "./inspector.ts";
import type { Tools } from "./load.ts";
import { upWith } from "./peers.ts";
import { start } from "./process.ts";
import { figure, printTable } from "./report.ts";

export type StreamKind = "same format" | "translated" | "guarded";

export interface StreamMemory {
  readonly kind: StreamKind;
  readonly kibEach: number;
  /** The same after a third of the events, to show whether it grows with them. */
  readonly earlierKibEach: number;
  /** Objects on the heap alone. */
  readonly heapKibEach: number;
}

const KINDS: readonly { readonly kind: StreamKind; readonly path: string; readonly body: string }[] = [
  { kind: "same format", path: "/openai", body: "gpt-4o-mini-paced.sse.json" },
  { kind: "translated", path: "/anthropic", body: "claude-sonnet-4-5-paced.sse.json" },
  { kind: "guarded", path: "/stream-guard", body: "gpt-4o-mini-paced.sse.json" },
];

const MOCK_PORT = 18_111;
const PORT = 18_112;
const INSPECTOR_PORT = 18_113;
const STREAMS = 1_000;
const WARM = 200;
const AT_ONCE = 50;
const HELD_MS = 200;
/** An event of each stream; a stream has 103 of them. */
const INTERVAL_MS = 400;
const EARLY_MS = 10_000;
const LATE_MS = 30_000;
/** The program collects and gives back memory while it rests. */
const REST_MS = 3_000;

export async function measureStreams({ mock }: Tools, folder: string): Promise<StreamMemory[]> {
  const address = `127.0.0.1:${MOCK_PORT}`;
  const args = ["-addr", address, "-interval", `${INTERVAL_MS}ms`];
  const upstream = await start({ file: mock, args }, new URL(`http://${address}/`), 5_000);
  try {
    const results: StreamMemory[] = [];
    // A process for each, so that none begins with the memory of another.
    for (const each of KINDS) results.push(await measureKind(each, join(folder, `streams-${each.path.slice(1)}`)));
    return results;
  } finally {
    await upstream.stop();
  }
}

async function measureKind({ kind, path, body }: (typeof KINDS)[number], folder: string): Promise<StreamMemory> {
  const files = ["backends", "routes", "policies", "llm"];
  const command = await upWith(folder, PORT, { files, upstream: MOCK_PORT });
  const args = [inspected(INSPECTOR_PORT), ...command.args];
  const running = await start({ ...command, args }, new URL(`http://127.0.0.1:${PORT}/plain`), 20_000);
  const agent = new Agent({ maxSockets: Infinity });
  try {
    const target = `${path}/v1/chat/completions`;
    // Code that runs for the first time takes memory too.
    const whole = readBodyFile(body.replace("-paced.sse", ""));
    for (let at = 0; at < WARM; at++) (await ask(agent, target, whole)).resume();
    await delay(REST_MS);
    const weigh = async (): Promise<{ heap: number; resident: number }> => {
      const heap = await heapMiB(INSPECTOR_PORT);
      return { heap, resident: running.residentMiB() };
    };
    const before = await weigh();
    const bytes = readBodyFile(body);
    const streams: Promise<unknown>[] = [];
    for (let at = 0; at < STREAMS; at += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, async () => (await ask(agent, target, bytes)).resume());
      streams.push(...some);
      // A guard holds back the head with the first events.
      await (kind === "guarded" ? delay(HELD_MS) : Promise.all(some));
    }
    const failed = Promise.all(streams).then(() => undefined);
    failed.catch(() => undefined);
    const grown = async (): Promise<{ heap: number; resident: number }> => {
      const { heap, resident } = await weigh();
      const kibEach = (mib: number): number => (mib * 1024) / STREAMS;
      return { heap: kibEach(heap - before.heap), resident: kibEach(resident - before.resident) };
    };
    await delay(EARLY_MS);
    const early = await grown();
    await delay(LATE_MS - EARLY_MS);
    const late = await grown();
    process.stderr.write(
      `  streams           ${kind}: ${figure(early.resident)}, then ${figure(late.resident)} KiB each\n`,
    );
    // A stream that failed takes no memory; those that are still held back are open.
    await Promise.race([failed, delay(0)]);
    return { kind, kibEach: late.resident, earlierKibEach: early.resident, heapKibEach: late.heap };
  } finally {
    agent.destroy();
    await running.stop();
  }
}

/** Resolves with the head of the answer. @throws Error for a status other than 200 */
function ask(agent: Agent, path: string, body: Buffer): Promise<IncomingMessage> {
  const headers = { "content-type": "application/json", "content-length": body.length };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: PORT, path, method: "POST", agent, headers }, (response) => {
      // The end of the measurement cuts streams that are still open.
      response.on("error", () => undefined);
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${path} answers ${response.statusCode}`));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export function streamTable(streams: readonly StreamMemory[]): string {
  const rows = streams.map(({ kind, kibEach, earlierKibEach, heapKibEach }) =>
    [kind, earlierKibEach, kibEach, heapKibEach].map((value) => (typeof value === "number" ? figure(value) : value)),
  );
  return printTable([`KiB of each of ${STREAMS} open streams`, "after 25 events", "after 75", "of it objects"], rows);
}
