/** A port that takes no connection and refuses none, as an address does behind which nobody is: its queue is full. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ProofContext } from "../gateway/prove.ts";

/** node takes every connection at once, so another program has to leave them alone. */
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

/** @param port that nobody else listens on at this address */
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
