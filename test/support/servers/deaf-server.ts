/**
 * A port whose accept queue is full, so that it neither accepts nor refuses connections, like an address without a
 * host.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ProofContext } from "../proofs/prove.ts";

/** Python program that listens without accepting; Node accepts every connection at once. */
const LISTEN = `
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=0)
waiting = []
for _ in range(4):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(server.getsockname())
    waiting.append(client)
print("ready", flush=True)
sys.stdin.read()
`;

/** @param port a port that is free at this address */
export async function startDeafServer(context: Pick<ProofContext, "after">, host: string, port: number): Promise<void> {
  const server = spawn("python3", ["-c", LISTEN, host, String(port)], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(server, "exit");
  context.after(async () => {
    server.stdin.end();
    await ended;
  });
  const [output] = (await Promise.race([once(server.stdout, "data"), ended])) as [unknown];
  assert.equal(String(output).trim(), "ready");
}
