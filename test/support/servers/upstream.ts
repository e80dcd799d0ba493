/** Small real upstream servers on loopback for tests of the data plane. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer, type Socket } from "node:net";

export interface TestUpstream {
  readonly port: number;
  /** Requests that arrived, in order. */
  readonly requests: readonly IncomingMessage[];
  /** Returns the number of connections opened so far. */
  connections(): number;
  close(): Promise<void>;
}

export async function startUpstream(listener: RequestListener): Promise<TestUpstream> {
  const requests: IncomingMessage[] = [];
  let opened = 0;
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  server.on("connection", () => opened++);
  const port = await listenOn(server);
  return {
    port,
    requests,
    connections: () => opened,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export interface RawUpstream {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts an upstream that sends raw bytes, for answers that no HTTP library would send. */
export async function startRawUpstream(onConnection: (socket: Socket) => void): Promise<RawUpstream> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  const port = await listenOn(server);
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function listenOn(server: Server | TcpServer): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  // A TCP server that listens on a port has an address of this form.
  return (server.address() as AddressInfo).port;
}
