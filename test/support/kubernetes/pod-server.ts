/**
 * An API server that knows pods and forwards their ports, for commands that ask data planes. It speaks what a real one
 * does: WebSocket with the subprotocol v4.channel.k8s.io, a channel byte in front of each message, and the port number
 * first on each channel.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import type { ProofContext } from "../proofs/prove.ts";

export interface PodServer {
  /** Path of a kubeconfig that names the server, with the namespace "team". */
  readonly kubeconfig: string;
  /** Paths that were asked for. */
  readonly asked: readonly string[];
}

/** @param answers JSON by path; others are 404 @param statuses HTTP status by path, with a Status object */
export async function startPodServer(
  context: Pick<ProofContext, "after">,
  answers: Readonly<Record<string, unknown>>,
  statuses: Readonly<Record<string, number>> = {},
): Promise<PodServer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    asked.push(request.url ?? "");
    const status = statuses[path] ?? (path in answers ? 200 : 404);
    const body = status === 200 ? answers[path] : { kind: "Status", code: status, message: "no", reason: "NotFound" };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  const sockets = new WebSocketServer({ server, handleProtocols: () => "v4.channel.k8s.io" });
  sockets.on("connection", (socket, request) => {
    asked.push(request.url ?? "");
    tunnel(socket, Number(new URL(request.url ?? "", "http://a").searchParams.get("ports")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
    server.closeAllConnections();
  });
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo;
  return { kubeconfig: writeKubeconfig(context, `http://127.0.0.1:${port}`), asked };
}

function tunnel(socket: WebSocket, port: number): void {
  const backend = connect(port, "127.0.0.1");
  const number = Buffer.from([port & 0xff, port >> 8]);
  socket.send(Buffer.concat([Buffer.of(0), number]));
  socket.send(Buffer.concat([Buffer.of(1), number]));
  backend.on("data", (chunk: Buffer) => socket.send(Buffer.concat([Buffer.of(0), chunk])));
  backend.on("close", () => socket.close());
  backend.on("error", () => socket.close());
  socket.on("message", (message: Buffer) => void backend.write(message.subarray(1)));
  socket.on("close", () => backend.destroy());
}

function writeKubeconfig(context: Pick<ProofContext, "after">, server: string): string {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-pods-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "config");
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "a", cluster: { server, "insecure-skip-tls-verify": true } }],
      users: [{ name: "a", user: {} }],
      contexts: [{ name: "a", context: { cluster: "a", user: "a", namespace: "team" } }],
      "current-context": "a",
    }),
  );
  return file;
}
