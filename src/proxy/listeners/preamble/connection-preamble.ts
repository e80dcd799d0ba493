/**
 * What was said in front of a Bind's connections: by load balancers about their clients (PROXY headers), and by the
 * CONNECT that a tunnel came through. By the addresses of the socket, which are the same before and after a handshake and
 * for as long as it is open.
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
    /** That the client asked for. */
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

/** Of a client among those of one Bind. */
export function socketKey({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
