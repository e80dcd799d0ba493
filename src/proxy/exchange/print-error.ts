/**
 * Prints an error of the proxy as a response: plain text, its own JSON, or a trailers-only status for gRPC clients.
 * Listeners use it before there is an exchange, pipeline/error-reply.ts for the others.
 */
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError, PROXY_ERRORS } from "./errors.ts";
import type { Reply } from "./exchange.ts";

export function printError(error: ProxyError, grpc: boolean): Reply {
  if (!grpc) {
    const type = error.json === undefined ? "text/plain; charset=utf-8" : "application/json";
    const body = Buffer.from(error.json ?? error.text);
    return { status: error.status, headers: new HeaderList(["content-type", type]), body, upstream: false };
  }
  const headers = new HeaderList([
    "content-type",
    "application/grpc",
    "grpc-status",
    String(PROXY_ERRORS[error.code].grpc),
    "grpc-message",
    messageOf(error.text),
  ]);
  return { status: 200, headers, body: null, upstream: false };
}

const PERCENT = 0x25;

/** Percent-encodes "%" and every byte outside of printable ASCII (gRPC over HTTP/2, "Status-Message"). */
function messageOf(text: string): string {
  let out = "";
  for (const byte of Buffer.from(text, "utf8")) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== PERCENT;
    out += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
