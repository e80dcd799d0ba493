/** Small real gRPC servers on loopback, and TCP servers that misbehave. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { serviceDefinition } from "../../../src/lib/grpc.ts";
import type { ProofContext } from "../proofs/prove.ts";

export interface GrpcServer {
  readonly port: number;
  /** Ends every connection at once. */
  stop(): void;
}

export interface GrpcOptions {
  /** Port to listen on; 0 selects a free one. */
  readonly port?: number;
  readonly credentials?: ServerCredentials;
}

export async function startGrpc(
  context: Pick<ProofContext, "after">,
  service: DescService,
  handlers: UntypedServiceImplementation,
  options: GrpcOptions = {},
): Promise<GrpcServer> {
  const { port = 0, credentials = ServerCredentials.createInsecure() } = options;
  const server = new Server();
  server.addService(serviceDefinition(service), handlers);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, at) => (error === null ? resolve(at) : reject(error)));
  });
  const stop = (): void => server.forceShutdown();
  context.after(stop);
  return { port: bound, stop };
}

/** Starts a TCP server; `speak` handles each connection. By default it stays silent, as a hanging host does. */
export async function startSocket(
  context: Pick<ProofContext, "after">,
  speak: (socket: Socket) => void = () => undefined,
): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.resume();
    speak(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  // A TCP server that listens on a port has an address of this form.
  return (server.address() as AddressInfo).port;
}

/**
 * Returns a port on which nothing listens. Unlike a port that was free a moment ago, it cannot be assigned to another
 * test.
 */
export function deadPort(): Promise<number> {
  return Promise.resolve(1);
}
