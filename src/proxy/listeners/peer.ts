/** Who is at the other end of a connection. */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

export interface Peer {
  readonly address: string;
  readonly port: number;
  /** The name that the client asked for in its TLS handshake, "" for none; undefined: plain text. */
  readonly serverName: string | undefined;
}

export function peerOf(socket: Socket): Peer {
  const { remoteAddress: address, remotePort: port } = socket;
  const serverName = socket instanceof TLSSocket ? socket.servername || "" : undefined;
  // A client that has reset its connection already has no address any more.
  if (address === undefined || port === undefined) return { address: "unknown", port: 0, serverName };
  return { address: plain(address), port, serverName };
}

/** "::ffff:127.0.0.1" is 127.0.0.1. */
function plain(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
