/** A fatal alert in place of an answer to a ClientHello (RFC 8446 6.2): a client hears why there is no handshake. */
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";
import { hangUp } from "../http1/refuse-socket.ts";

export const ALERT = { handshakeFailure: 40, unrecognizedName: 112 } as const;

const ALERT_RECORD = 21;
const FATAL = 2;

/** @param socket no byte of a handshake was written to it */
export function refuseHandshake(socket: Socket, alert: (typeof ALERT)[keyof typeof ALERT]): void {
  socket.on("error", ignore);
  socket.write(Buffer.from([ALERT_RECORD, 3, 3, 0, 2, FATAL, alert]));
  // What else it says is nobody's, and its end would not be heard.
  socket.resume();
  hangUp(socket);
}
