/**
 * One socket of a Gateway. In: connections. Out: each, freed of what wraps it (TLS), in the hands of the protocol that it
 * speaks. A change of configuration never ends a connection.
 */
import { createServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../../lib/log.ts";
import type { Engine } from "./engine.ts";
import { takeByPreface } from "./preface.ts";
import { TlsLayer, type BindTls } from "./server-tls.ts";

export interface BindOptions {
  readonly address: string;
  readonly port: number;
  readonly log: Logger;
  /** Asked for every connection; unset: plain text. */
  readonly tls: (() => BindTls) | undefined;
  readonly http1: Engine;
  readonly http2: Engine;
}

export interface BindSocket {
  readonly boundPort: number;
  /** Stops accepting; resolves when the last connection is gone. Requests in flight are answered. */
  drain(): Promise<void>;
  /** Ends everything now. */
  close(): void;
}

const TCP_KEEPALIVE_MS = 180_000;
/** For the first bytes of a plain connection. */
const HEAD_TIMEOUT_MS = 60_000;
const BACKLOG = 4096;

/** @throws the listen error (EADDRINUSE, EACCES) */
export async function openBindSocket(options: BindOptions): Promise<BindSocket> {
  const { http1, http2, log, tls } = options;
  const connections = new Set<Socket>();
  let onEmpty = (): void => undefined;
  const onSecure = (socket: TLSSocket): void => (socket.alpnProtocol === "h2" ? http2 : http1).take(socket);
  const layer = tls === undefined ? undefined : new TlsLayer({ log, tls, protocols: ["h2", "http/1.1"], onSecure });
  const server = createServer({
    // A client may end its side and still wait for the answer.
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
  });
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.on("close", () => {
      connections.delete(socket);
      if (connections.size === 0) onEmpty();
    });
    if (layer === undefined) takeByPreface(socket, { http1, http2 }, HEAD_TIMEOUT_MS);
    else layer.accept(socket);
  });
  const drainEngines = (): void => {
    http1.drain();
    http2.drain();
  };
  await listen(server, options);
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("listener without a port");
  return {
    boundPort: bound.port,
    drain() {
      server.close();
      drainEngines();
      return new Promise((resolve) => {
        onEmpty = resolve;
        if (connections.size === 0) resolve();
      });
    },
    close() {
      server.close();
      drainEngines();
      for (const socket of connections) socket.destroy();
    },
  };
}

function listen(server: Server, { address, port }: BindOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: address, backlog: BACKLOG }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
