/**
 * Turns an error into the reply that the client receives (table in errors.ts): a trailers-only status for gRPC clients,
 * the error format of the client's API on routes to models, plain text otherwise.
 */
import { HeaderList } from "../../lib/header-list.ts";
import { PROXY_ERRORS, ProxyError } from "../errors.ts";
import type { Reply } from "./exchange.ts";
import { isGrpc } from "./grpc.ts";
import { printClientError } from "../llm/client-formats/error-answer.ts";
import { pathOf } from "./roots.ts";
import type { HttpExchange } from "./http-exchange.ts";

/**
 * Never throws. Any value that is not a ProxyError becomes an `internal` error whose text appears in the log only.
 * @param origin the policy and field that raised the error, for the log
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

/**
 * Decides by the backend once one is chosen; before that by the rule, or by the rule that the listener would choose.
 */
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

/** Percent-encodes "%" and every byte outside of printable ASCII (gRPC over HTTP/2, "Status-Message"). */
function messageOf(text: string): string {
  let out = "";
  for (const byte of Buffer.from(text, "utf8")) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== PERCENT;
    out += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
