/**
 * The answer that an error becomes (errors.ts): trailers-only status for gRPC clients, the format of the client on routes to
 * models, text for everyone else.
 */
import { HeaderList } from "../../lib/header-list.ts";
import { PROXY_ERRORS, ProxyError } from "../errors.ts";
import type { Reply } from "./exchange.ts";
import { isGrpc } from "./grpc.ts";
import { printClientError } from "../llm/client-formats/error-answer.ts";
import { pathOf } from "./roots.ts";
import type { HttpExchange } from "./http-exchange.ts";

/**
 * Never throws: what is not a ProxyError is an internal one, and its text stays in the log.
 * @param origin the policy and its field that it came from, for the log
 */
export function errorReply(exchange: HttpExchange, thrown: unknown, origin?: string): Reply {
  const error = thrown instanceof ProxyError ? thrown : new ProxyError("internal", { cause: thrown });
  exchange.error = error;
  exchange.errorOrigin = origin;
  if (exchange.connect) return printError(error, false);
  const grpc = isGrpc(exchange.requestHeaders);
  if (grpc || !isOfModels(exchange)) return printError(error, grpc);
  return { ...printClientError(error, pathOf(exchange.target), exchange.requestLimitBytes), upstream: false };
}

/** The backend decides once it is chosen; before that the rule does, or the one that the listener would choose. */
function isOfModels(exchange: HttpExchange): boolean {
  const { backend, destination } = exchange;
  return backend === undefined ? destination?.servesModels(exchange) === true : backend.type === "ai";
}

export function printError(error: ProxyError, grpc: boolean): Reply {
  if (!grpc) {
    const headers = new HeaderList(["content-type", "text/plain; charset=utf-8"]);
    return { status: error.status, headers, body: Buffer.from(error.text), upstream: false };
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

/** Every byte that is no printable ASCII, and "%", in percent form (gRPC over HTTP/2, "Status-Message"). */
function messageOf(text: string): string {
  let out = "";
  for (const byte of Buffer.from(text, "utf8")) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== PERCENT;
    out += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
