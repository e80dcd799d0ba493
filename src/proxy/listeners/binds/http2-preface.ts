/** Distinguishes HTTP/2 from HTTP/1 on plain-text Binds by the connection preface of HTTP/2 clients (RFC 9113 §3.4). */
import type { Socket } from "node:net";
import type { ProtocolServer } from "../protocol-server.ts";
import { peekFirstBytes } from "../preamble/first-bytes.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export function acceptByPreface(
  socket: Socket,
  servers: { http1: ProtocolServer; http2: ProtocolServer },
  timeoutMs: number,
): void {
  peekFirstBytes(
    socket,
    detectVersion,
    (protocol) => {
      servers[protocol].accept(socket);
      // node:http2 reads buffered bytes by itself; node:http needs the socket to flow.
      if (protocol === "http1") socket.resume();
    },
    timeoutMs,
  );
}

function detectVersion(start: Buffer): "http1" | "http2" | undefined {
  const compared = Math.min(start.length, PREFACE.length);
  if (!start.subarray(0, compared).equals(PREFACE.subarray(0, compared))) return "http1";
  return start.length < PREFACE.length ? undefined : "http2";
}
