/**
 * Responses to HTTP/1.1 upgrades and CONNECT (RFC 9110 §7.8, §9.3.6), used by the HTTP/1 server: either an ordinary
 * response that ends the connection, or a tunnel to the upstream.
 */
import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";
import type { Tunnel } from "../../exchange/exchange.ts";
import { Http1ResponseEncoder } from "./response-encoder.ts";
import { TunnelRelay } from "../tunnel-relay.ts";
import { hangUp } from "../../../lib/network/hang-up.ts";

export class Http1UpgradeEncoder extends Http1ResponseEncoder {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #first: Buffer;

  /** @param first the bytes after the head, which node has read already */
  constructor(request: IncomingMessage, socket: Socket, first: Buffer) {
    const response = new ServerResponse(request);
    super(response);
    this.#response = response;
    this.#socket = socket;
    this.#first = first;
    response.assignSocket(socket);
    // node:http has detached from the socket, so forward its events to the response.
    socket.on("drain", () => response.emit("drain"));
    socket.on("error", ignore);
    response.on("finish", () => {
      socket.resume();
      hangUp(socket);
    });
  }

  /** Turns an ordinary 2xx into 502: the client would take it as the start of the CONNECT tunnel. */
  override head(status: number, headers: string[]): void {
    super.head(this.#response.req.method === "CONNECT" && status >= 200 && status < 300 ? 502 : status, headers, true);
  }

  join(headers: readonly string[], tunnel: Tunnel, onOver: (relay: TunnelRelay) => void): void {
    const socket = this.#socket;
    this.#response.detachSocket(socket);
    let text = `HTTP/1.1 ${tunnel.protocol === "" ? "200 OK" : "101 Switching Protocols"}\r\n`;
    for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
    if (tunnel.protocol !== "") text += `connection: upgrade\r\nupgrade: ${tunnel.protocol}\r\n`;
    socket.write(`${text}\r\n`, "latin1");
    if (this.#first.length > 0) socket.unshift(this.#first);
    new TunnelRelay(socket, tunnel.stream, onOver).start();
  }
}
