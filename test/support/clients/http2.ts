/** Sends HTTP/2 requests of a test on one connection, without additions, and returns the answers. */
import { once } from "node:events";
import { connect, type ClientHttp2Session, type ClientHttp2Stream, type OutgoingHttpHeaders } from "node:http2";

export interface Http2Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly trailers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
}

/** @param options options of the TLS connection; without them, plain text with prior knowledge */
export async function connectHttp2(
  url: string,
  options: Parameters<typeof connect>[1] = {},
): Promise<ClientHttp2Session> {
  const session = connect(url, options);
  await once(session, "connect");
  // Errors show at the requests.
  session.on("error", () => undefined);
  return session;
}

export function sendHttp2(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  { body, trailers }: { readonly body?: Buffer | string; readonly trailers?: OutgoingHttpHeaders } = {},
): Promise<Http2Answer> {
  const stream = session.request(headers, { endStream: body === undefined, waitForTrailers: trailers !== undefined });
  if (trailers !== undefined) stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  if (body !== undefined) stream.end(body);
  return answerOf(stream);
}

/** @throws the error with which the stream ended without an answer */
export function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let headers: Http2Answer["headers"] = {};
    let trailers: Http2Answer["trailers"] = {};
    stream.on("response", (fields) => (headers = fields));
    stream.on("trailers", (fields) => (trailers = fields));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("end", () => {
      if (stream.rstCode !== 0) return;
      resolve({ status: Number(headers[":status"]), headers, trailers, body: Buffer.concat(chunks) });
    });
    stream.on("close", () => reject(new Error(`stream closed with code ${stream.rstCode}`)));
  });
}
