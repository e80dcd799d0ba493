/** The response side of a transformation: what expressions see of it, its status and its body. */
import { HeaderView } from "../../cel/header-view.ts";
import type { Scope } from "../../cel/scope.ts";
import { holdStart } from "../pipeline/buffering.ts";
import type { Exchange, Reply } from "../pipeline/exchange.ts";
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

interface Captured {
  readonly body: Buffer | null;
  readonly prefix: Buffer | null;
}

const NOT_CAPTURED: Captured = { body: null, prefix: null };

/**
 * The exchange's roots plus "response".
 * @returns a scope whose `response.body` is null when the body is larger than what may be held
 */
export async function captureResponse(exchange: Exchange, reply: Reply, readsBody: boolean): Promise<Scope> {
  const { body, prefix } = readsBody ? await capture(reply, exchange.responseLimitBytes) : NOT_CAPTURED;
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

async function capture(reply: Reply, limitBytes: number): Promise<Captured> {
  const { body } = reply;
  if (body === null) return { body: Buffer.alloc(0), prefix: Buffer.alloc(0) };
  const whole = Buffer.isBuffer(body) ? body : body.whole?.();
  if (whole !== undefined) {
    const fits = whole.length <= limitBytes;
    return { body: fits ? whole : null, prefix: whole.subarray(0, limitBytes) };
  }
  if (Buffer.isBuffer(body)) return NOT_CAPTURED;
  const held = await holdStart(body, limitBytes);
  reply.body = held.body;
  return { body: held.complete ? held.start : null, prefix: held.start.subarray(0, limitBytes) };
}
