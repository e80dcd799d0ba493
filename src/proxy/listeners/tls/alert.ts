/** Sends a fatal TLS alert in response to a ClientHello (RFC 8446 §6.2), for clients that TlsLayer refuses. */
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";
import { hangUp } from "../../../lib/network/hang-up.ts";

export const ALERT = { handshakeFailure: 40, unrecognizedName: 112 } as const;

const ALERT_RECORD = 21;
const FATAL = 2;

/** @param socket one to which no byte of a handshake has been written */
export function refuseHandshake(socket: Socket, alert: (typeof ALERT)[keyof typeof ALERT]): void {
  socket.on("error", ignore);
  socket.write(Buffer.from([ALERT_RECORD, 3, 3, 0, 2, FATAL, alert]));
  // Read and drop the remaining bytes: a paused socket never emits `end`.
  socket.resume();
  hangUp(socket);
}
