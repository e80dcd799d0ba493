/**
 * Error responses on a raw socket. The HTTP/1 server uses them for bytes that its parser rejects, and the acceptor for
 * a refused CONNECT: in both cases no ServerResponse exists that could carry the response.
 */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { ignore } from "../../lib/ignore.ts";
import { PROXY_ERRORS, ProxyError } from "../exchange/errors.ts";
import { printError } from "../exchange/print-error.ts";
import { hangUp } from "../../lib/network/hang-up.ts";

/** Writes an error response to the socket and closes it. */
export function refuseSocket(socket: Socket, error: ProxyError): void {
  const { status, body } = printError(error, false);
  const text = Buffer.isBuffer(body) ? body.toString("latin1") : "";
  const reason = REASONS.get(status) ?? "Error";
  // Clients often reset a refused connection, and an `error` event without a listener would end the process.
  socket.on("error", ignore);
  socket.write(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: text/plain; charset=utf-8\r\nx-request-id: ${randomUUID()}\r\n` +
      `date: ${new Date().toUTCString()}\r\n` +
      `content-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
    "latin1",
  );
  hangUp(socket);
}

/** Maps an error code of node's HTTP parser to the error that the client gets. */
export function proxyErrorOf({ code }: NodeJS.ErrnoException): ProxyError {
  if (code === "HPE_HEADER_OVERFLOW") return new ProxyError("headers_too_large");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new ProxyError("request_slow");
  return new ProxyError("request_invalid");
}

const REASONS: ReadonlyMap<number, string> = new Map([
  [PROXY_ERRORS.request_invalid.status, "Bad Request"],
  [PROXY_ERRORS.bind_not_found.status, "Not Found"],
  [PROXY_ERRORS.method_not_allowed.status, "Method Not Allowed"],
  [PROXY_ERRORS.request_slow.status, "Request Timeout"],
  [PROXY_ERRORS.headers_too_large.status, "Request Header Fields Too Large"],
  [PROXY_ERRORS.loop_detected.status, "Loop Detected"],
]);
