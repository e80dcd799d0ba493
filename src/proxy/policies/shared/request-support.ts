/** The request side of a transformation: pseudo-headers and the body. */
import { ProxyError } from "../../errors.ts";
import type { BodySink } from "../../pipeline/body.ts";
import type { Exchange } from "../../pipeline/exchange.ts";
import { hasDotSegment } from "../../pipeline/fields.ts";
import type { TransformTarget } from "./transform-support.ts";

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;
/** Visible ASCII from a slash on: anything else could split the request line. */
const TARGET = /^\/[\u0021-\u007e]*$/;
const AUTHORITY = /^[A-Za-z0-9.\-_~:[\]%]{1,260}$/;
/** Takes a body to its end and keeps nothing. */
const NOWHERE: BodySink = { data: () => true, end: () => undefined, error: () => undefined };

export function requestTarget(exchange: Exchange): TransformTarget {
  return {
    headers: exchange.requestHeaders,
    // CONNECT is no method like others: an upstream would take what follows for the bytes of a tunnel.
    setPseudo(name, value) {
      if (name === ":method" && METHOD.test(value) && value !== "CONNECT") exchange.method = value;
      else if (name === ":path" && TARGET.test(value)) exchange.target = checkedPath(value);
      else if (name === ":scheme" && (value === "http" || value === "https")) exchange.scheme = value;
      else if (name === ":authority" && AUTHORITY.test(value)) exchange.host = value;
    },
  };
}

/**
 * Parts of the request go into such a path: unescaped by an expression, they are dot segments like those of a client.
 * @throws ProxyError request_invalid
 */
function checkedPath(target: string): string {
  if (hasDotSegment(target))
    throw new ProxyError("request_invalid", { detail: "dot segment in a :path that a policy wrote" });
  return target;
}

/** The client's own body is read to its end, so that its connection stays usable. */
export async function readAway(exchange: Exchange): Promise<void> {
  const { requestBody } = exchange;
  if (requestBody === null || Buffer.isBuffer(requestBody)) return;
  const whole = await exchange.bufferRequestBody(exchange.requestLimitBytes);
  // Too large to hold: the stream is still there, and nobody else will read it.
  if (whole === undefined && exchange.requestBody !== null && !Buffer.isBuffer(exchange.requestBody))
    exchange.requestBody.read(NOWHERE);
}

export async function transformRequestBody(exchange: Exchange, body: Buffer): Promise<void> {
  await readAway(exchange);
  exchange.requestBody = body;
  exchange.requestHeaders.remove("content-length");
}
