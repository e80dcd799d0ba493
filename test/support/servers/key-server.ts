/** A server that publishes a JWKS and records its requests. */
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { validNow } from "./tls-upstream.ts";

export interface KeyServer {
  readonly port: number;
  /** PEM of the authority behind its certificate; "" without TLS. */
  readonly authority: string;
  /** Requested paths, oldest first. */
  readonly asked: string[];
  /** Answer at its path; other paths answer 404. */
  answer: { readonly path: string; readonly status?: number; readonly body: string };
}

/** @param names names of its certificate; without any it speaks plain HTTP */
export async function startKeyServer(
  context: ProofContext,
  answer: KeyServer["answer"],
  names: readonly string[] = [],
): Promise<KeyServer> {
  const asked: string[] = [];
  const handler: RequestListener = (request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const found = path === state.answer.path;
    response.writeHead(found ? (state.answer.status ?? 200) : 404, { "content-type": "application/json" });
    response.end(found ? state.answer.body : "");
  };
  const authority = createAuthority("key server authority", validNow());
  const leaf = createLeaf(authority, names, validNow());
  const server =
    names.length === 0 ? createServer(handler) : createTlsServer({ cert: leaf.certificate, key: leaf.key }, handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  const state: KeyServer = { port, asked, answer, authority: names.length === 0 ? "" : authority.certificate };
  return state;
}
