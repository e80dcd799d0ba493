/**
 * The TLS connections of a Bind, each with what its handshake agreed on; those too whose handshake is the backend's. Those of a listener whose settings or name have
 * changed end with the answers under way; another certificate is for new handshakes only (proxying.md 14).
 */
import type { Socket } from "node:net";
import type { ServedConnection } from "../protocol-server.ts";
import type { BindTls } from "./server-tls.ts";

interface Secured {
  readonly served: ServedConnection;
  readonly serverName: string;
  readonly settings: string | undefined;
}

export class SecuredConnections {
  readonly #all = new Map<Socket, Secured>();
  #reviewed: BindTls | undefined;

  /** @param serverName that its listener was chosen by, in lower case; "" for none */
  add(socket: Socket, serverName: string, served: ServedConnection, tls: BindTls): void {
    this.#all.set(socket, { served, serverName, settings: tls.settingsOf(serverName) });
    socket.on("close", () => this.#all.delete(socket));
  }

  /** @param tls in force from now on; the same object as before means no change */
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
