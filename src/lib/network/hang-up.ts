/** The end of a raw socket after its last bytes, for refused requests, handshakes and upgrades. */
import type { Socket } from "node:net";

/** Time for the peer to send the rest and close; without a limit it could hold the socket forever. */
const LINGER_MS = 5_000;

/**
 * Closes our side once everything is written, and the connection soon after. Closing both at once could reset the
 * connection and lose the response on its way (RFC 9112 §9.6).
 */
export function hangUp(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}
