/** The answer to bytes that are no HTTP request: nobody else is there to give one. */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { ignore } from "../../../lib/ignore.ts";
import { PROXY_ERRORS, ProxyError } from "../../errors.ts";
import { printError } from "../../pipeline/error-reply.ts";

/** Answers on a socket that no ServerResponse belongs to, and closes it. */
export function refuseSocket(socket: Socket, error: ProxyError): void {
  const { status, body } = printError(error, false);
  const text = Buffer.isBuffer(body) ? body.toString("latin1") : "";
  const reason = REASONS.get(status) ?? "Error";
  // Nobody else may be listening any more, and a client may well reset what it is refused on.
  socket.on("error", ignore);
  socket.write(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: text/plain; charset=utf-8\r\nx-request-id: ${randomUUID()}\r\n` +
      `date: ${new Date().toUTCString()}\r\n` +
      `content-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
    "latin1",
  );
  hangUp(socket);
}

/** For what the other side still has to say; after that it has no say any more, or it would hold the socket for ever. */
const LINGER_MS = 5_000;

/** Ends our side once everything is written, and the connection soon after. */
export function hangUp(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

/** What a parser's complaint means. */
export function refusalOf({ code }: NodeJS.ErrnoException): ProxyError {
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
