/**
 * Accepts TLS and plaintext on one port, distinguished by the first byte, so that data planes of both kinds stay
 * connected while a fleet moves from one to the other. `discovery.ts` uses it.
 */
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { ServerCredentials, type Server } from "@grpc/grpc-js";

/**
 * Content type of a TLS handshake record (RFC 8446 §5.1). HTTP/2 in plaintext begins with the letter P (RFC 9113 §3.4).
 */
const TLS_HANDSHAKE = 0x16;

/** A connection that sends no byte within this time is closed. */
const FIRST_BYTE_LIMIT_MS = 10_000;

/** @returns a server that is not listening yet and passes its connections to `server` */
export function createEitherListener(server: Server, credentials: ServerCredentials): NetServer {
  const secure = server.createConnectionInjector(credentials);
  const plain = server.createConnectionInjector(ServerCredentials.createInsecure());
  return createServer((socket: Socket) => {
    socket.setNoDelay(true);
    socket.setTimeout(FIRST_BYTE_LIMIT_MS, () => socket.destroy());
    // Handles a peer that resets before its first byte; later the HTTP/2 session has its own listener.
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
