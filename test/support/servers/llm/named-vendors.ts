/** The vendors of models at their own host names, behind a forward proxy, for tests of the addresses that are dialled. */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { createAuthority, createLeaf } from "../../../../src/lib/certificates/x509.ts";
import type { ProofContext } from "../../proofs/prove.ts";
import { startForwardProxy, type ForwardProxy } from "../forward-proxy.ts";
import { validNow } from "../tls-upstream.ts";

interface SeenCall {
  /** The server name of the handshake, the path with its query, and the Host field. */
  readonly at: readonly [serverName: string | false, path: string, host: string];
  readonly model: unknown;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface NamedVendors {
  readonly seen: readonly SeenCall[];
  /** Resolves the host names to the local server. */
  readonly proxy: ForwardProxy;
  /** Certificate of the authority, as PEM. */
  readonly authority: string;
}

/** Starts a TLS server for all of the names, and a proxy that leads to it. */
export async function startNamedVendors(context: ProofContext, names: readonly string[]): Promise<NamedVendors> {
  const authority = createAuthority("vendors", validNow());
  const { certificate, key } = createLeaf(authority, names, validNow());
  const seen: SeenCall[] = [];
  const server = createServer({ cert: certificate, key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { servername } = request.socket as TLSSocket; // every socket of an HTTPS server is a TLSSocket
      const body = Buffer.concat(chunks).toString();
      const { model } = JSON.parse(body) as { model?: unknown };
      const { headers, url = "" } = request;
      seen.push({ at: [servername ?? false, url, headers.host ?? ""], model, body, headers });
      response.writeHead(200, { "content-type": "application/json" }).end('{"candidates":[]}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  const ports = ["443", "8443"];
  const places = names.flatMap((name) => ports.map((each) => [`${name}:${each}`, `127.0.0.1:${port}`]));
  const proxy = await startForwardProxy(context, { places: Object.fromEntries(places) as Record<string, string> });
  return { seen, proxy, authority: authority.certificate };
}
