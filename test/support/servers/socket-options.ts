/** What the system knows about a socket of this process: node sets these options and cannot read them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { text } from "node:stream/consumers";

export interface KeepaliveOptions {
  readonly seconds: number;
  readonly intervalSeconds: number;
  readonly probes: number;
}

const PRINT = `
import json, socket
own = socket.socket(fileno=3)
options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
print(json.dumps([own.getsockopt(socket.IPPROTO_TCP, option) for option in options]))
`;

/** @param remotePort of the one open connection of this process to it */
export async function keepaliveOptions(remotePort: number): Promise<KeepaliveOptions> {
  // node has it for debugging, and nothing else that finds a socket which somebody else opened.
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): unknown[] };
  const sockets = handles
    .call(process)
    .filter((handle) => handle instanceof Socket && !handle.destroyed && handle.remotePort === remotePort);
  assert.equal(sockets.length, 1, `${sockets.length} connections to port ${remotePort}`);
  // One of the right kind, by the filter.
  const { stdout } = spawn("python3", ["-c", PRINT], { stdio: ["ignore", "pipe", "inherit", sockets[0] as Socket] });
  assert.ok(stdout);
  const [seconds, intervalSeconds, probes] = JSON.parse(await text(stdout)) as [number, number, number];
  return { seconds, intervalSeconds, probes };
}
