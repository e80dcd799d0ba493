/**
 * Ports for programs that have to be told theirs before they listen. They lie below those that the system gives to whoever asks
 * for any (32768 and up on Linux): otherwise another test might be given one before the program has taken it.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const FIRST = 20_000;
const BEHIND_LAST = 30_000;

/** Nobody in this process is told a port twice. */
const given = new Set<number>();

/** Ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(FIRST, BEHIND_LAST);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    ports.push(port);
  }
  return ports;
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
