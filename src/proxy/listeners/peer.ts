/**
 * Both ends of a connection, and the CEL scope of it: `source`, `destination` and `env`
 * (docs/reference/expressions.md). The acceptor and the protocol servers create one per connection, and all its
 * requests share it.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { HeaderView } from "../../cel/header-view.ts";
import type { Scope } from "../../cel/scope.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import { Attributes, readers } from "../exchange/attributes.ts";
import type { ConnectionPreambles } from "./preamble/connection-preamble.ts";
import type { Frontend } from "./frontend.ts";
import { CERTIFICATE_READERS, type ClientCertificate, clientCertificateOf } from "./tls/client-certificate.ts";

/** The serving process, equal for every connection of a Bind. */
export interface Env {
  readonly podName: string;
  readonly namespace: string;
  readonly gateway: string;
}

export interface ConnectionInfo {
  /** Address of the client; a PROXY header names the one behind a load balancer. */
  readonly address: string;
  readonly port: number;
  /** Remote address of the socket itself. */
  readonly rawAddress: string;
  readonly rawPort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** Server name of the TLS handshake, "" for none; undefined on plain text. */
  readonly serverName: string | undefined;
  readonly certificate: ClientCertificate | undefined;
  /** Headers of the CONNECT that opened the tunnel of this connection. */
  readonly connectHeaders: HeaderList | undefined;
}

export class Peer implements Scope {
  readonly ends: ConnectionInfo;
  /** True for a trusted proxy, whose forwarding headers are kept. */
  readonly trusted: boolean;
  /** Kept as text, because every request writes it into x-forwarded-port. */
  readonly localPort: string;
  readonly #env: Env;
  #source: unknown;
  #destination: unknown;

  constructor(ends: ConnectionInfo, env: Env, trusted: boolean) {
    this.ends = ends;
    this.trusted = trusted;
    this.localPort = String(ends.localPort);
    this.#env = env;
  }

  get address(): string {
    return this.ends.address;
  }

  get port(): number {
    return this.ends.port;
  }

  get serverName(): string | undefined {
    return this.ends.serverName;
  }

  root(name: string): unknown {
    switch (name) {
      case "source":
        return (this.#source ??= new Attributes(SOURCE, this.ends));
      case "destination":
        return (this.#destination ??= new Attributes(DESTINATION, this.ends));
      case "env":
        return this.#env;
      default:
        return undefined;
    }
  }
}

const SOURCE = new Map([
  ...readers<ConnectionInfo>({
    address: ({ address }) => address,
    port: ({ port }) => port,
    rawAddress: ({ rawAddress }) => rawAddress,
    rawPort: ({ rawPort }) => rawPort,
    connectHeaders: ({ connectHeaders }) => (connectHeaders === undefined ? undefined : new HeaderView(connectHeaders)),
  }),
  ...[...CERTIFICATE_READERS].map(
    ([name, read]) =>
      [name, ({ certificate }: ConnectionInfo) => (certificate === undefined ? undefined : read(certificate))] as const,
  ),
]);

const DESTINATION = readers<ConnectionInfo>({
  address: ({ localAddress }) => localAddress,
  port: ({ localPort }) => localPort,
  hostname: ({ serverName }) => (serverName === "" ? undefined : serverName),
});

/** @param sniffed the server name of a passthrough handshake, "" for none */
export function peerOf(
  socket: Socket,
  { env, preambles }: { readonly env: Env; readonly preambles: ConnectionPreambles },
  frontend: Pick<Frontend, "trusts">,
  sniffed = "",
): Peer {
  const { localAddress = UNKNOWN, localPort = 0 } = socket;
  const secure = socket instanceof TLSSocket ? socket : undefined;
  // A socket loses its remote address when the client resets the connection.
  const gone = socket.remoteAddress === undefined || socket.remotePort === undefined;
  const rawAddress = gone ? UNKNOWN : plain(socket.remoteAddress);
  const rawPort = gone ? 0 : socket.remotePort;
  const preamble = preambles.of(socket);
  const { address, port } = preamble?.client ?? { address: rawAddress, port: rawPort };
  const ends: ConnectionInfo = {
    address: plain(address),
    port,
    rawAddress,
    rawPort,
    localAddress: plain(localAddress),
    localPort: preamble?.connect?.port ?? localPort,
    serverName: secure === undefined ? sniffed || undefined : secure.servername || "",
    // Read it now: the access log needs the certificate after the socket is destroyed, which drops it.
    certificate: secure === undefined ? undefined : clientCertificateOf(secure),
    connectHeaders: preamble?.connect?.headers,
  };
  return new Peer(ends, env, frontend.trusts(ends.address));
}

const UNKNOWN = "unknown";

/** Turns an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) into the IPv4 one: "::ffff:127.0.0.1" is 127.0.0.1. */
function plain(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
