/**
 * Measures the memory of an open stream: one process holds 1,000 streams and another one 2,000, and the mock sends
 * events on all of them. The difference of resident memory after a full garbage collection leaves out what the engine
 * allocates once, such as the young generation.
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
  /** KiB of objects on the JavaScript heap. */
  readonly heapKibEach: number;
}

interface Kind {
  readonly kind: StreamKind;
  readonly path: string;
  readonly body: string;
}

const KINDS: readonly Kind[] = [
  { kind: "same format", path: "/openai", body: "gpt-4o-mini-paced.sse.json" },
  { kind: "translated", path: "/anthropic", body: "claude-sonnet-4-5-paced.sse.json" },
  { kind: "guarded", path: "/stream-guard", body: "gpt-4o-mini-paced.sse.json" },
];

const MOCK_PORT = 18_111;
const PORT = 18_112;
const INSPECTOR_PORT = 18_113;
const STREAMS = 1_000;
const AT_ONCE = 50;
const HELD_MS = 200;
/** Interval between two events of a stream, which has 103 events and thus lasts 41 s. */
const INTERVAL_MS = 400;
/** Age of the streams at the measurement, about 50 events. */
const AGE_MS = 20_000;

export async function measureStreams({ mock }: Tools, folder: string): Promise<StreamMemory[]> {
  const address = `127.0.0.1:${MOCK_PORT}`;
  const args = ["-addr", address, "-interval", `${INTERVAL_MS}ms`];
  const upstream = await start({ file: mock, args }, new URL(`http://${address}/`), 5_000);
  try {
    const results: StreamMemory[] = [];
    for (const each of KINDS) {
      const scratch = join(folder, `streams-${each.path.slice(1)}`);
      const few = await weighStreams(each, STREAMS, scratch);
      const many = await weighStreams(each, 2 * STREAMS, scratch);
      const kibEach = ((many.resident - few.resident) * 1024) / STREAMS;
      const heapKibEach = ((many.heap - few.heap) * 1024) / STREAMS;
      process.stderr.write(`  streams           ${each.kind}: ${figure(kibEach)} KiB each\n`);
      results.push({ kind: each.kind, kibEach, heapKibEach });
    }
    return results;
  } finally {
    await upstream.stop();
  }
}

interface Weight {
  readonly heap: number;
  readonly resident: number;
}

/** @returns MiB of a process that holds this many streams @throws Error when a stream fails or ends too early */
async function weighStreams({ kind, path, body }: Kind, count: number, folder: string): Promise<Weight> {
  const files = ["backends", "routes", "policies", "llm"];
  const command = await upWith(folder, PORT, { files, upstream: MOCK_PORT });
  const args = [inspected(INSPECTOR_PORT), ...command.args];
  const running = await start({ ...command, args }, new URL(`http://127.0.0.1:${PORT}/plain`), 20_000);
  const agent = new Agent({ maxSockets: Infinity });
  try {
    const target = `${path}/v1/chat/completions`;
    const bytes = readBodyFile(body);
    let ended = 0;
    const openStream = async (): Promise<void> => {
      const response = await ask(agent, target, bytes);
      response.once("end", () => (ended += 1)).resume();
    };
    const streams: Promise<void>[] = [];
    for (let at = 0; at < count; at += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, openStream);
      streams.push(...some);
      // A guard holds the response head back together with the first events.
      await (kind === "guarded" ? delay(HELD_MS) : Promise.all(some));
    }
    const opened = Promise.all(streams);
    opened.catch(() => undefined);
    await delay(AGE_MS);
    const heap = await heapMiB(INSPECTOR_PORT);
    const resident = running.residentMiB();
    // A response head that is still held back is not a failure.
    await Promise.race([opened, delay(0)]);
    if (ended > 0) throw new Error(`${ended} streams ended before they were weighed: the machine is too busy`);
    return { heap, resident };
  } finally {
    agent.destroy();
    await running.stop();
  }
}

/** Resolves with the response head. @throws Error for a status other than 200 */
function ask(agent: Agent, path: string, body: Buffer): Promise<IncomingMessage> {
  const headers = { "content-type": "application/json", "content-length": body.length };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: PORT, path, method: "POST", agent, headers }, (response) => {
      // The end of the measurement breaks streams that are still open.
      response.on("error", () => undefined);
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${path} answers ${response.statusCode}`));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export function streamTable(streams: readonly StreamMemory[]): string {
  const rows = streams.map(({ kind, kibEach, heapKibEach }) => [kind, figure(kibEach), figure(heapKibEach)]);
  return printTable(["KiB of an open stream, from 1,000 to 2,000", "resident", "of it objects"], rows);
}
