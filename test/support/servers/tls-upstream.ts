/** An upstream behind TLS that answers with the properties of its handshake, or to an MCP client as a server without tools. */
import { execFileSync } from "node:child_process";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { createAuthority, createLeaf, type KeyPair, type Validity } from "../../../src/lib/certificates/x509.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { INITIALIZED } from "../fixtures/mcp-initialized.ts";

/** Content of an answer, as JSON. */
export interface Handshake {
  /** Server name that the client sent (SNI); false for none. */
  readonly serverName: string | false;
  /** Protocols that the newest connection offered (ALPN). */
  readonly protocols: readonly string[];
  /** Common name of the client certificate. */
  readonly client: string | undefined;
}

export interface TlsUpstream {
  readonly port: number;
  /** PEM of the authority that signed its certificate. */
  readonly authority: string;
  /** Of the connections of all requests, oldest request first. */
  readonly handshakes: readonly Handshake[];
}

const HOUR_MS = 3_600_000;

export function validNow(): Validity {
  return { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + HOUR_MS) };
}

/**
 * @param names names of its certificate
 * @param options options of the server, which override the certificate
 */
export async function startTlsUpstream(
  context: ProofContext,
  names: readonly string[],
  options: ServerOptions = {},
): Promise<TlsUpstream> {
  const authority = createAuthority("upstream authority", validNow());
  const { certificate, key } = createLeaf(authority, names, validNow());
  const handshakes: Handshake[] = [];
  let offered: readonly string[] = [];
  const server = createServer({
    cert: certificate,
    key,
    ALPNCallback: ({ protocols }) => {
      offered = protocols;
      return protocols.includes("http/1.1") ? "http/1.1" : undefined;
    },
    ...options,
  });
  server.on("request", (request, response) => {
    const socket = request.socket as TLSSocket; // every socket of an HTTPS server is a TLSSocket
    const handshake: Handshake = {
      serverName: socket.servername ?? false,
      protocols: offered,
      client: socket.getPeerCertificate().subject?.CN?.toString(),
    };
    handshakes.push(handshake);
    response.setHeader("content-type", "application/json");
    response.end(request.url === "/mcp" ? INITIALIZED : JSON.stringify(handshake));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  return { port, authority: authority.certificate, handshakes };
}

/**
 * Creates a self-signed certificate, which its clients must trust directly.
 * @param alternative a subject alternative name, "URI:…" or "DNS:…"
 */
export function createSelfSigned(commonName: string, alternative?: string): KeyPair {
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const names = alternative === undefined ? [] : ["-addext", `subjectAltName=${alternative}`];
  const made = execFileSync(
    "openssl",
    ["req", "-x509", ...curve, "-days", "2", "-subj", `/CN=${commonName}`, ...names, "-keyout", "-", "-out", "-"],
    { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
  );
  const start = made.indexOf("-----BEGIN CERTIFICATE-----");
  return { certificate: made.slice(start), key: made.slice(0, start) };
}
