/**
 * Measures the memory of MCP sessions. One process opens 10,000 sessions and then calls a tool in each, which shows
 * that none was dropped. Other processes hold 1,000 and 2,000 sessions with an open stream (GET) each, as `streams.ts`
 * does with responses. Memory is resident memory after full garbage collections.
 */
import { Agent, request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { heapMiB, inspected } from "./inspector.ts";
import type { Tools } from "./load.ts";
import { upWith } from "./peers.ts";
import { start, type Running } from "./process.ts";
import { figure, printTable } from "./report.ts";

export interface SessionFigures {
  readonly sessions: number;
  /** Requests of these sessions that failed. */
  readonly failed: number;
  /** Describes the first failure. */
  readonly failure: string | undefined;
  readonly grownMiB: number;
  /** Memory of one open stream and its session: the growth from 1,000 to 2,000 of them. */
  readonly streamKib: number;
  /** The part of it that is on the JavaScript heap. */
  readonly streamHeapKib: number;
}

const MOCK_PORT = 18_114;
const PORT = 18_115;
const INSPECTOR_PORT = 18_116;
const SESSIONS = 10_000;
/** Sessions that end before the measurement, so that memory which the engine allocates once is not counted. */
const WARM_SESSIONS = 2_000;
const STREAMS = 1_000;
const AT_ONCE = 32;

export async function measureSessions({ mock }: Tools, folder: string): Promise<SessionFigures> {
  const address = `127.0.0.1:${MOCK_PORT}`;
  const upstream = await start({ file: mock, args: ["-addr", address] }, new URL(`http://${address}/`), 5_000);
  try {
    const few = await withGateway(folder, (gateway) => weighStreams(gateway, STREAMS));
    const many = await withGateway(folder, (gateway) => weighStreams(gateway, 2 * STREAMS));
    const each = (from: number, to: number): number => ((to - from) * 1024) / STREAMS;
    const figures = {
      ...(await withGateway(folder, weighSessions)),
      streamKib: each(few.resident, many.resident),
      streamHeapKib: each(few.heap, many.heap),
    };
    process.stderr.write(`  mcp-sessions      ${figure(figures.grownMiB)} MiB, ${figures.failed} failed\n`);
    return figures;
  } finally {
    await upstream.stop();
  }
}

/** A gateway and the connections to it. */
interface Gateway {
  readonly running: Running;
  readonly agent: Agent;
}

async function withGateway<T>(folder: string, measure: (gateway: Gateway) => Promise<T>): Promise<T> {
  const command = await upWith(join(folder, "mcp-sessions"), PORT, {
    files: ["backends", "routes", "policies", "llm"],
    upstream: MOCK_PORT,
  });
  const args = [inspected(INSPECTOR_PORT), ...command.args];
  const running = await start({ ...command, args }, new URL(`http://127.0.0.1:${PORT}/plain`), 20_000);
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: AT_ONCE });
  try {
    return await measure({ running, agent });
  } finally {
    agent.destroy();
    await running.stop();
  }
}

interface Weight {
  readonly heap: number;
  readonly resident: number;
}

/** @returns MiB after full collections */
async function weigh({ running }: Gateway): Promise<Weight> {
  const heap = await heapMiB(INSPECTOR_PORT);
  return { heap, resident: running.residentMiB() };
}

async function weighSessions(gateway: Gateway): Promise<Omit<SessionFigures, "streamKib" | "streamHeapKib">> {
  const warm = await many(WARM_SESSIONS, () => begin(gateway));
  await many(WARM_SESSIONS, (at) => call(gateway, warm[at] ?? ""));
  await many(WARM_SESSIONS, (at) => expect(gateway, { method: "DELETE", id: warm[at] ?? "", status: 202 }));
  const before = await weigh(gateway);
  const failures: string[] = [];
  const count = async <T>(work: Promise<T>): Promise<T | undefined> => {
    try {
      return await work;
    } catch (error) {
      failures.push(String(error));
      return undefined;
    }
  };
  const ids = await many(SESSIONS, () => count(begin(gateway)));
  await many(SESSIONS, (at) => count(call(gateway, ids[at] ?? "")));
  const after = await weigh(gateway);
  const grownMiB = after.resident - before.resident;
  return { sessions: SESSIONS, failed: failures.length, failure: failures[0], grownMiB };
}

/** @throws Error when a stream ends before it was weighed */
async function weighStreams(gateway: Gateway, count: number): Promise<Weight> {
  let ended = 0;
  await many(count, async () => {
    const id = await begin(gateway);
    const stream = await send(gateway, { method: "GET", id, path: "/mcp-listen" });
    if (stream.statusCode !== 200) throw new Error(`a stream is answered with ${stream.statusCode}`);
    stream.once("close", () => (ended += 1)).resume();
  });
  const weight = await weigh(gateway);
  if (ended > 0) throw new Error(`${ended} streams ended before they were weighed`);
  return weight;
}

/** Runs the work `count` times, several at once. */
async function many<T>(count: number, work: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const at = next++;
      results[at] = await work(at);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

const VERSION = "2025-06-18";
const INITIALIZE = {
  id: 0,
  method: "initialize",
  params: { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: "bench", version: "1.0" } },
};
const CALL = { id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hello" } } };

/** @returns the id of the new session */
async function begin(gateway: Gateway): Promise<string> {
  const answer = await expect(gateway, { method: "POST", status: 200, message: INITIALIZE });
  const id = String(answer.headers["mcp-session-id"] ?? "");
  if (id === "") throw new Error("initialize gave no session");
  await expect(gateway, { method: "POST", id, status: 202, message: { method: "notifications/initialized" } });
  return id;
}

async function call(gateway: Gateway, id: string): Promise<void> {
  const { body } = await expect(gateway, { method: "POST", id, status: 200, message: CALL });
  if (!body.includes("echo: hello")) throw new Error(`a call is answered with ${body}`);
}

interface Asked {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path?: string;
  /** Id of the session. */
  readonly id?: string;
  readonly message?: object;
}

/** @throws Error for another status */
async function expect(gateway: Gateway, asked: Asked & { readonly status: number }) {
  const answer = await send(gateway, asked);
  const body = await text(answer);
  if (answer.statusCode !== asked.status)
    throw new Error(`${asked.method} is answered with ${answer.statusCode} ${body}`);
  return { headers: answer.headers, body };
}

/** Resolves with the head of the answer. */
function send({ agent }: Gateway, { method, path = "/mcp-listen", id, message }: Asked): Promise<IncomingMessage> {
  const body = message === undefined ? undefined : Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const headers = {
    accept: "application/json, text/event-stream",
    ...(id === undefined ? {} : { "mcp-session-id": id, "mcp-protocol-version": VERSION }),
    ...(body === undefined ? {} : { "content-type": "application/json", "content-length": body.length }),
  };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: PORT, path, method, agent, headers }, (response) => {
      // The end of the measurement breaks streams that are still open.
      response.on("error", () => undefined);
      resolve(response);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export function sessionTable({
  sessions,
  failed,
  failure,
  grownMiB,
  streamKib,
  streamHeapKib,
}: SessionFigures): string {
  return printTable(
    ["MCP sessions", ""],
    [
      [`memory of ${sessions} sessions, one call each, MiB`, figure(grownMiB)],
      ["requests of theirs that failed", failure === undefined ? String(failed) : `${failed}, first: ${failure}`],
      ["memory of a session with an open stream, from 1,000 to 2,000, KiB", figure(streamKib)],
      ["of it objects", figure(streamHeapKib)],
    ],
  );
}
