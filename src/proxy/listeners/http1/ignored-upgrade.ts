/**
 * Requests with an upgrade that the HTTP/1 server ignores. node's parser stops for good after the head of an upgrade,
 * so such a request is put back in front of its connection and parsed once more.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { isOffer } from "../received-request.ts";

/** Reports whether to ignore an upgrade: one that only offers HTTP/2 or TLS, or one in HTTP/1.0 (RFC 9110 §7.8). */
export function isIgnoredUpgrade({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion !== "1.1" || isOffer(headers.upgrade ?? "");
}

/** Hands the connection back to the server, which parses the request again without its Upgrade field. */
export function parseWithoutUpgrade(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Socket,
  first: Buffer,
): void {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() !== "upgrade") head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, "latin1"), first]));
  server.emit("connection", socket);
  socket.resume();
}
