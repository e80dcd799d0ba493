/**
 * The response side of transformations, retries and callouts: the root "response" of expressions, the status and the
 * body.
 */
import { HeaderView } from "../../../cel/header-view.ts";
import type { Scope } from "../../../cel/scope.ts";
import { captureBody, NOT_CAPTURED } from "../../exchange/capture.ts";
import type { Exchange, Reply } from "../../exchange/exchange.ts";
import type { TransformTarget } from "./transform-support.ts";

export function responseTarget(reply: Reply): TransformTarget {
  return {
    headers: reply.headers,
    setPseudo(name, value) {
      if (name === ":status" && /^[2-5]\d\d$/.test(value)) reply.status = Number(value);
    },
  };
}

export function replaceResponseBody(reply: Reply, body: Buffer): void {
  if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
  reply.body = body.length === 0 ? null : body;
  reply.headers.remove("content-length");
}

/**
 * Adds the root "response" to those of the exchange.
 * @returns a scope whose `response.body` is null when the body is larger than the limit
 */
export async function captureResponse(exchange: Exchange, reply: Reply, readsBody: boolean): Promise<Scope> {
  const { body, prefix } = readsBody ? await captureBody(reply, exchange.responseLimitBytes) : NOT_CAPTURED;
  const grpcStatus = reply.headers.get("grpc-status");
  const response = {
    code: reply.status,
    headers: new HeaderView(reply.headers),
    body,
    bodyPrefix: prefix,
    ...(grpcStatus === undefined ? {} : { grpcStatus: Number(grpcStatus) }),
  };
  return { root: (name) => (name === "response" ? response : exchange.root(name)) };
}
