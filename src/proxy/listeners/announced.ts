/**
 * What PROXY headers say about the clients of a Bind's connections. By the addresses of the socket, which are the same before
 * and after a handshake and for as long as it is open.
 */
import type { Socket } from "node:net";

export interface Client {
  readonly address: string;
  readonly port: number;
}

export class Announced {
  readonly #clients = new Map<string, Client>();

  note(socket: Socket, client: Client): void {
    const key = keyOf(socket);
    this.#clients.set(key, client);
    socket.on("close", () => this.#clients.delete(key));
  }

  of(socket: Socket): Client | undefined {
    return this.#clients.size === 0 ? undefined : this.#clients.get(keyOf(socket));
  }
}

function keyOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
