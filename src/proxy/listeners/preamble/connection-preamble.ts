/**
 * Stores the preambles of a Bind's open connections: the client that a PROXY header named, and the CONNECT of a tunnel.
 * The acceptor writes them and `peerOf` reads them. The key is the remote address and port of the socket, because they
 * stay the same when a TLSSocket wraps the socket and for as long as it is open.
 */
import type { Socket } from "node:net";
import type { HeaderList } from "../../../lib/header-list.ts";

interface Client {
  readonly address: string;
  readonly port: number;
}

export interface ConnectionPreamble {
  readonly client?: Client | undefined;
  readonly connect?: {
    /** Port that the client asked for. */
    readonly port: number;
    readonly headers: HeaderList;
  };
}

export class ConnectionPreambles {
  readonly #said = new Map<string, ConnectionPreamble>();

  note(socket: Socket, said: ConnectionPreamble): void {
    const key = socketKey(socket);
    this.#said.set(key, said);
    socket.on("close", () => this.#said.delete(key));
  }

  of(socket: Socket): ConnectionPreamble | undefined {
    return this.#said.size === 0 ? undefined : this.#said.get(socketKey(socket));
  }
}

/** Identifies an open connection of one Bind, before and after its TLS handshake. */
export function socketKey({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
