/** The connections of one listener and the requests in flight on each: whoever loses its client must hear of it. */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { PROXY_ERRORS, ProxyError } from "../errors.ts";
import { printError } from "../pipeline/error-reply.ts";
import type { Reply } from "../pipeline/exchange.ts";
import type { Peer } from "./arrival.ts";

/** A request in flight. */
export interface InFlight {
  onConnectionLost(): void;
}

interface Connection {
  readonly peer: Peer;
  /** More than one only when a client pipelines. */
  readonly visits: Set<InFlight>;
}

const UNKNOWN: Peer = { address: "unknown", port: 0, serverName: undefined };

export class Connections {
  readonly #connections = new WeakMap<Socket, Connection>();

  add(socket: Socket): void {
    const { remoteAddress: address, remotePort: port } = socket;
    const serverName = socket instanceof TLSSocket ? socket.servername || "" : undefined;
    const known = address !== undefined && port !== undefined;
    const peer = known ? { address: plain(address), port, serverName } : { ...UNKNOWN, serverName };
    const connection: Connection = { peer, visits: new Set() };
    this.#connections.set(socket, connection);
    socket.on("close", () => {
      for (const visit of connection.visits) visit.onConnectionLost();
      connection.visits.clear();
    });
  }

  peerOf(socket: Socket): Peer {
    return this.#connections.get(socket)?.peer ?? UNKNOWN;
  }

  enter(socket: Socket, visit: InFlight): void {
    this.#connections.get(socket)?.visits.add(visit);
  }

  leave(socket: Socket, visit: InFlight): void {
    this.#connections.get(socket)?.visits.delete(visit);
  }

  isIdle(socket: Socket): boolean {
    return (this.#connections.get(socket)?.visits.size ?? 0) === 0;
  }

  /** Bytes that are no HTTP. While an answer is under way nothing can be said in between. */
  onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    if (!this.isIdle(socket) || !socket.writable || error.code === "ECONNRESET") socket.destroy();
    else refuseSocket(socket, refusalOf(error));
  }
}

function refusalOf({ code }: NodeJS.ErrnoException): Reply {
  if (code === "HPE_HEADER_OVERFLOW") return printError(new ProxyError("headers_too_large"), false);
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return printError(new ProxyError("request_slow"), false);
  return printError(new ProxyError("request_invalid"), false);
}

/** Answers on a socket that no ServerResponse belongs to, and closes it. */
export function refuseSocket(socket: Socket, { status, body }: Reply): void {
  const text = Buffer.isBuffer(body) ? body.toString("latin1") : "";
  const reason = REASONS.get(status) ?? "Error";
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: text/plain; charset=utf-8\r\n` +
      `content-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
    "latin1",
  );
}

const REASONS: ReadonlyMap<number, string> = new Map([
  [PROXY_ERRORS.request_invalid.status, "Bad Request"],
  [PROXY_ERRORS.method_not_allowed.status, "Method Not Allowed"],
  [PROXY_ERRORS.request_slow.status, "Request Timeout"],
  [PROXY_ERRORS.headers_too_large.status, "Request Header Fields Too Large"],
]);

/** "::ffff:127.0.0.1" is 127.0.0.1. */
function plain(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
