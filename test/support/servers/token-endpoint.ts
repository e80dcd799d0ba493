/** A token endpoint that records each call with its form, and answers as the test says. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

interface TokenCall {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly form: URLSearchParams;
}

export interface TokenReply {
  readonly status?: number;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Members that replace those of the usual answer. */
  readonly members?: Readonly<Record<string, unknown>>;
}

export interface TokenServer {
  readonly port: number;
  readonly url: string;
  readonly calls: TokenCall[];
  reply: (call: TokenCall) => TokenReply;
}

/** Every answer holds a new token, "minted-1" and so on. */
export async function startTokenServer(context: ProofContext): Promise<TokenServer> {
  const calls: TokenCall[] = [];
  const found = { port: 0, url: "", calls, reply: (): TokenReply => ({}) };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      const { method = "", url: path = "", headers } = request;
      calls.push({ method, path, headers, form });
      const call = { method, path, headers, form };
      const {
        status = 200,
        type = "application/json",
        headers: more = {},
        body,
        members,
      } = (found as TokenServer).reply(call);
      const usual = { access_token: `minted-${calls.length}`, token_type: "Bearer", expires_in: 3600, ...members };
      response.writeHead(status, { "content-type": type, ...more }).end(body ?? JSON.stringify(usual));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  found.port = (server.address() as AddressInfo).port;
  found.url = `http://127.0.0.1:${found.port}`;
  return found;
}
