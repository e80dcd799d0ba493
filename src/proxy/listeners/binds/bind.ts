/**
 * The listening socket of a Bind: accepts connections, hands each to the acceptor, and drains them. Binds opens and
 * closes these sockets. A configuration change never ends a connection here.
 */
import { createServer, type Server, type Socket } from "node:net";
import type { ConnectionMeter } from "../../../telemetry/metrics.ts";
import { keepAlive } from "../../../lib/network/keepalive.ts";
import type { Logger } from "../../../lib/log.ts";
import type { ProtocolServer } from "../protocol-server.ts";
import type { Frontend } from "../frontend.ts";

export interface BindOptions {
  readonly address: string;
  readonly port: number;
  /** Several threads listen on the port and the kernel distributes connections among them (SO_REUSEPORT). */
  readonly reusePort: boolean;
  /** Returns the settings in force; called anew for each connection. */
  readonly frontend: () => Frontend;
  readonly accept: (socket: Socket) => void;
  readonly servers: readonly ProtocolServer[];
  readonly log: Logger;
  readonly meter?: ConnectionMeter | undefined;
}

export interface BindSocket {
  readonly boundPort: number;
  /** Returns the clients of all open connections, each as "address:port". */
  clients(): string[];
  /** Asks clients to end each connection, later ones too, after the responses in flight. */
  announce(): void;
  /** Announces and stops accepting; resolves when the last connection is gone. Requests in flight get a response. */
  drain(): Promise<void>;
  /** Stops accepting and destroys all connections at once. */
  close(): void;
}

const BACKLOG = 4096;

/** @throws the listen error (EADDRINUSE, EACCES) */
export async function openBindSocket(options: BindOptions): Promise<BindSocket> {
  const { accept, servers, frontend, meter } = options;
  const connections = new Set<Socket>();
  const empty = Promise.withResolvers<void>();
  let draining = false;
  const server = createServer({
    // A client may close its write side and still wait for the response.
    allowHalfOpen: true,
    noDelay: true,
  });
  server.on("connection", (socket) => {
    keepAlive(socket, frontend().keepalive);
    connections.add(socket);
    meter?.opened();
    socket.on("close", () => {
      connections.delete(socket);
      meter?.closed(socket.bytesRead, socket.bytesWritten);
      if (draining && connections.size === 0) empty.resolve();
    });
    accept(socket);
  });
  const drainEngines = (): void => {
    for (const server of servers) server.drain();
  };
  await listen(server, options);
  // Running out of file descriptors or memory is temporary: keep the open connections and go on accepting.
  server.on("error", (error) =>
    options.log.warn("connection not accepted", { port: options.port, reason: error.message }),
  );
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("listener without a port");
  return {
    boundPort: bound.port,
    clients: () => Array.from(connections, ({ remoteAddress, remotePort }) => `${remoteAddress}:${remotePort}`),
    announce() {
      for (const server of servers) server.announce();
    },
    drain() {
      server.close();
      drainEngines();
      draining = true;
      if (connections.size === 0) empty.resolve();
      return empty.promise;
    },
    close() {
      server.close();
      drainEngines();
      for (const socket of connections) socket.destroy();
    },
  };
}

/**
 * Returns a BindSocket for an internal Bind, which does not listen: its connections come through the tunnel of another
 * Bind, which counts them as its own until they end.
 */
export function withoutSocket(servers: readonly ProtocolServer[]): BindSocket {
  const drain = (): void => {
    for (const server of servers) server.drain();
  };
  return {
    boundPort: 0,
    clients: () => [],
    announce() {
      for (const server of servers) server.announce();
    },
    drain: () => Promise.resolve(drain()),
    close: drain,
  };
}

function listen(server: Server, { address, port, reusePort }: BindOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: address, backlog: BACKLOG, reusePort }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
