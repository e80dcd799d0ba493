/**
 * A server that is a SPIFFE workload: it requires a client of its trust domain and answers with the client's identity, to
 * an MCP client as further members of its message.
 */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import type { ProofContext } from "../proofs/prove.ts";
import { INITIALIZED } from "../fixtures/mcp-initialized.ts";
import type { Authority, Svid } from "../fixtures/svid.ts";

/** Content of an answer, as JSON. */
export interface Asked {
  /** Subject alternative names of the client's certificate. */
  readonly client: string;
  readonly serialNumber: string;
  /** The header `Authorization`; "" for none. */
  readonly authorization: string;
  readonly serverName: string | false;
  /** Number of the connection, counted by the server. */
  readonly connection: number;
}

/** @returns its port */
export async function startWorkload(
  context: Pick<ProofContext, "after">,
  svid: Pick<Svid, "certificate" | "privateKey">,
  clients: readonly Pick<Authority, "certificate">[],
): Promise<number> {
  const server = createServer({
    cert: svid.certificate,
    key: svid.privateKey,
    ca: clients.map(({ certificate }) => certificate),
    requestCert: true,
    rejectUnauthorized: true,
  });
  const numbers = new WeakMap<object, number>();
  let connections = 0;
  server.on("secureConnection", (socket) => void numbers.set(socket, ++connections));
  server.on("request", (request, response) => {
    const socket = request.socket as TLSSocket; // every socket of an HTTPS server is a TLSSocket
    const { subjectaltname = "", serialNumber } = socket.getPeerCertificate();
    const asked: Asked = {
      client: subjectaltname,
      serialNumber,
      authorization: request.headers.authorization ?? "",
      serverName: socket.servername ?? false,
      connection: numbers.get(socket) ?? 0,
    };
    request.resume();
    const answer = request.url === "/mcp" ? { ...JSON.parse(INITIALIZED), ...asked } : asked;
    response.setHeader("content-type", "application/json");
    request.on("end", () => response.end(JSON.stringify(answer)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port; // a TCP server has such an address
}
