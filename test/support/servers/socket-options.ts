/** Reads keepalive options of a socket of this process from the kernel, because Node can only set them. */
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

/** @param remotePort port to which this process has exactly one open connection */
export async function keepaliveOptions(remotePort: number): Promise<KeepaliveOptions> {
  // Node has this function for debugging only. There is no other way to find a socket that was opened elsewhere in the
  // process.
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): unknown[] };
  const sockets = handles
    .call(process)
    .filter((handle) => handle instanceof Socket && !handle.destroyed && handle.remotePort === remotePort);
  assert.equal(sockets.length, 1, `${sockets.length} connections to port ${remotePort}`);
  // The filter leaves only sockets.
  const { stdout } = spawn("python3", ["-c", PRINT], { stdio: ["ignore", "pipe", "inherit", sockets[0] as Socket] });
  assert.ok(stdout);
  const [seconds, intervalSeconds, probes] = JSON.parse(await text(stdout)) as [number, number, number];
  return { seconds, intervalSeconds, probes };
}
