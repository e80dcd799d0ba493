/**
 * TLS and plaintext on one port, told apart by the first byte: data planes of both kinds stay connected while a fleet
 * moves from one to the other.
 */
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { ServerCredentials, type Server } from "@grpc/grpc-js";

/** Type of a TLS record that carries a handshake. HTTP/2 in plaintext begins with the letter P. */
const TLS_HANDSHAKE = 0x16;

/** A connection that says nothing is not kept. */
const FIRST_BYTE_LIMIT_MS = 10_000;

/** @returns a server that is not listening yet and hands its connections to `server` */
export function createEitherListener(server: Server, credentials: ServerCredentials): NetServer {
  const secure = server.createConnectionInjector(credentials);
  const plain = server.createConnectionInjector(ServerCredentials.createInsecure());
  return createServer((socket: Socket) => {
    socket.setNoDelay(true);
    socket.setTimeout(FIRST_BYTE_LIMIT_MS, () => socket.destroy());
    // A peer that resets before it has said anything; afterwards the HTTP/2 session has its own listener.
    socket.on("error", () => socket.destroy());
    socket.once("readable", () => {
      const first: unknown = socket.read(1);
      if (!Buffer.isBuffer(first)) return socket.destroy();
      socket.setTimeout(0);
      socket.removeAllListeners("timeout");
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).injectConnection(socket);
    });
  });
}
