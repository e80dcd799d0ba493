/**
 * Stores the preambles of a Bind's open connections: the client that a PROXY header named, and the CONNECT of a tunnel.
 * The acceptor writes them and `peerOf` reads them. The key is both ends of the socket, because they stay the
 * same when a TLSSocket wraps the socket and for as long as it is open. The local end is part of it: tunnels through
 * several ports lead to one Bind, and a client may use one port of its own for all of them.
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
  readonly #preambles = new Map<string, ConnectionPreamble>();

  note(socket: Socket, preamble: ConnectionPreamble): void {
    const key = socketKey(socket);
    this.#preambles.set(key, preamble);
    socket.on("close", () => {
      // A client may reconnect from the same port at once, so delete only the entry of this connection.
      if (this.#preambles.get(key) === preamble) this.#preambles.delete(key);
    });
  }

  of(socket: Socket): ConnectionPreamble | undefined {
    return this.#preambles.size === 0 ? undefined : this.#preambles.get(socketKey(socket));
  }
}

/** Identifies an open connection of the process, before and after its TLS handshake. */
export function socketKey({ remoteAddress = "", remotePort = 0, localAddress = "", localPort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
