/**
 * Tracks the open TLS connections of a Bind, passthrough included, with the settings that were in force at the
 * handshake. When settings or hostname of a listener change, its connections end after the responses in flight. A
 * changed certificate applies to new handshakes only. The acceptor adds connections, Binds starts the review.
 */
import type { Socket } from "node:net";
import type { ServedConnection } from "../protocol-server.ts";
import type { BindTls } from "../tls/server-tls.ts";

interface Secured {
  readonly served: ServedConnection;
  readonly serverName: string;
  readonly settings: string | undefined;
}

export class SecuredConnections {
  readonly #all = new Map<Socket, Secured>();
  #reviewed: BindTls | undefined;

  /** @param serverName server name that selected the listener, in lower case; "" for none */
  add(socket: Socket, serverName: string, served: ServedConnection, tls: BindTls): void {
    this.#all.set(socket, { served, serverName, settings: tls.settingsOf(serverName) });
    socket.on("close", () => this.#all.delete(socket));
  }

  /**
   * Retires connections whose settings differ from the new ones.
   * @param tls the same object as before means no change
   */
  review(tls: BindTls): void {
    if (this.#reviewed === tls) return;
    this.#reviewed = tls;
    for (const [socket, { served, serverName, settings }] of this.#all) {
      if (tls.settingsOf(serverName) === settings) continue;
      this.#all.delete(socket);
      served.retire();
    }
  }
}
