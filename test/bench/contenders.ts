/** Installs and starts the programs that are compared, and measures their start and their idle memory. */
import { mkdirSync } from "node:fs";
import type { Peer } from "./peers.ts";
import { start, type Command, type Running } from "./process.ts";

export interface Contender {
  readonly peer: Peer;
  readonly command: Command;
  running: Running;
  readonly startMs: number[];
  readonly idleMiB: number[];
  peakMiB: number;
}

/** Time for a process to settle after its start, before its idle memory is read. */
const IDLE_MS = 2_000;

/** @param folder created for this program @returns the reason when the program cannot take part */
export async function enter(peer: Peer, folder: string): Promise<Contender | string> {
  mkdirSync(folder);
  let command: Command;
  try {
    command = await peer.prepare(folder);
  } catch (error) {
    return `not installed: ${reasonOf(error)}`;
  }
  try {
    const running = await start(command, probeOf(peer), peer.startLimitMs);
    process.stderr.write(`${peer.name} serves after ${running.startMs.toFixed(0)} ms\n`);
    const contender: Contender = { peer, command, running, startMs: [], idleMiB: [], peakMiB: 0 };
    await weigh(contender);
    return contender;
  } catch (error) {
    return `did not start: ${reasonOf(error)}`;
  }
}

/** Starts each program this many times, in turn. */
export async function measureStarts(contenders: readonly Contender[], times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    for (const contender of contenders) {
      await contender.running.stop();
      contender.running = await start(contender.command, probeOf(contender.peer), contender.peer.startLimitMs);
      await weigh(contender);
    }
  }
}

/** Returns the end of a message on one line: the last output of a program tells why it ended. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s+/g, " ").slice(-300);
}

function probeOf({ port, probe }: Peer): URL {
  return new URL(`http://127.0.0.1:${port}${probe}`);
}

async function weigh(contender: Contender): Promise<void> {
  contender.startMs.push(contender.running.startMs);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  contender.idleMiB.push(contender.running.residentMiB());
}
