/** An upstream that speaks only HTTP/2, on plain text or behind TLS. */
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type SecureServerOptions,
  type ServerOptions,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

export interface Http2Upstream {
  readonly port: number;
  /** Connections opened so far, oldest first. */
  readonly sessions: readonly ServerHttp2Session[];
}

export interface Http2Options extends ServerOptions, Pick<SecureServerOptions, "ca" | "requestCert"> {
  readonly pair?: { readonly certificate: string; readonly key: string };
}

export type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

export async function startHttp2Upstream(
  context: Pick<ProofContext, "after">,
  answer: Answer,
  { pair, ...options }: Http2Options = {},
): Promise<Http2Upstream> {
  const sessions: ServerHttp2Session[] = [];
  const server: Http2Server =
    pair === undefined
      ? createServer(options)
      : createSecureServer({ ...options, cert: pair.certificate, key: pair.key });
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => undefined);
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    answer(stream, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    for (const session of sessions) session.destroy();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  return { port, sessions };
}
