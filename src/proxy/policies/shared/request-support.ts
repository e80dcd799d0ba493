/** The request side of transformations and external processing: pseudo-headers and the body. */
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink } from "../../exchange/body.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { hasDotSegment, isOriginForm } from "../../exchange/fields.ts";
import type { TransformTarget } from "./transform-support.ts";

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;
const AUTHORITY = /^[A-Za-z0-9.\-_~:[\]%]{1,260}$/;
/** Reads a body to its end and keeps nothing. */
const NOWHERE: BodySink = { data: () => true, end: () => undefined, error: () => undefined };

export function requestTarget(exchange: Exchange): TransformTarget {
  return {
    headers: exchange.requestHeaders,
    // CONNECT cannot be set: an upstream would treat what follows as the bytes of a tunnel (RFC 9110 §9.3.6).
    setPseudo(name, value) {
      if (name === ":method" && METHOD.test(value) && value !== "CONNECT") exchange.method = value;
      else if (name === ":path" && isOriginForm(value)) exchange.target = checkedPath(value);
      else if (name === ":scheme" && (value === "http" || value === "https")) exchange.scheme = value;
      else if (name === ":authority" && AUTHORITY.test(value)) exchange.host = value;
    },
  };
}

/**
 * An expression may copy decoded parts of the request into the path, which yields dot segments as a client could send.
 * @throws ProxyError request_invalid
 */
function checkedPath(target: string): string {
  if (hasDotSegment(target))
    throw new ProxyError("request_invalid", { detail: "dot segment in a :path that a policy wrote" });
  return target;
}

/** Reads the client's body to its end, so that its connection stays usable. */
export async function readAway(exchange: Exchange): Promise<void> {
  const { requestBody } = exchange;
  if (requestBody === null || Buffer.isBuffer(requestBody)) return;
  const whole = await exchange.bufferRequestBody(exchange.requestLimitBytes);
  // The body is too large to hold and no later step reads it: drain the stream.
  if (whole === undefined && exchange.requestBody !== null && !Buffer.isBuffer(exchange.requestBody))
    exchange.requestBody.read(NOWHERE);
}

export async function transformRequestBody(exchange: Exchange, body: Buffer): Promise<void> {
  await readAway(exchange);
  exchange.requestBody = body;
  exchange.requestHeaders.remove("content-length");
}
