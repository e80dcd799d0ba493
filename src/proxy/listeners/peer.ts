/**
 * Both ends of a connection, and what expressions see of it before any byte of HTTP (`source`, `destination`, `env`;
 * runtime/cel.md 3.3). Made once per connection and shared by all its requests.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { HeaderView } from "../../cel/header-view.ts";
import type { Scope } from "../../cel/scope.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import { Attributes, readers } from "../pipeline/attributes.ts";
import type { ConnectionPreambles } from "./preamble/connection-preamble.ts";
import type { Frontend } from "./frontend.ts";
import { CERTIFICATE_READERS, type ClientCertificate, clientCertificateOf } from "./tls/client-certificate.ts";

/** Who serves: the same for every connection of a Bind. A value that is not known is left out. */
export interface Env {
  readonly podName: string;
  readonly namespace: string;
  readonly gateway: string;
}

export interface Ends {
  /** Of the client, as far as it is known behind whatever stands in between. */
  readonly address: string;
  readonly port: number;
  /** Of the socket. */
  readonly rawAddress: string;
  readonly rawPort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** The name that the client asked for in its TLS handshake, "" for none; undefined: plain text. */
  readonly serverName: string | undefined;
  readonly certificate: ClientCertificate | undefined;
  /** Fields of the CONNECT that the connection came through. */
  readonly connectHeaders: HeaderList | undefined;
}

export class Peer implements Scope {
  readonly ends: Ends;
  /** What it says about its own clients is believed. */
  readonly trusted: boolean;
  /** As text, for the headers of every request. */
  readonly localPort: string;
  readonly #env: Env;
  #source: unknown;
  #destination: unknown;

  constructor(ends: Ends, env: Env, trusted: boolean) {
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
  ...readers<Ends>({
    address: ({ address }) => address,
    port: ({ port }) => port,
    rawAddress: ({ rawAddress }) => rawAddress,
    rawPort: ({ rawPort }) => rawPort,
    connectHeaders: ({ connectHeaders }) => (connectHeaders === undefined ? undefined : new HeaderView(connectHeaders)),
  }),
  ...[...CERTIFICATE_READERS].map(
    ([name, read]) =>
      [name, ({ certificate }: Ends) => (certificate === undefined ? undefined : read(certificate))] as const,
  ),
]);

const DESTINATION = readers<Ends>({
  address: ({ localAddress }) => localAddress,
  port: ({ localPort }) => localPort,
  hostname: ({ serverName }) => (serverName === "" ? undefined : serverName),
});

/** @param sniffed the server name of a handshake that is not ours; "" for none */
export function peerOf(
  socket: Socket,
  { env, preambles }: { readonly env: Env; readonly preambles: ConnectionPreambles },
  frontend: Pick<Frontend, "trusts">,
  sniffed = "",
): Peer {
  const { localAddress = UNKNOWN, localPort = 0 } = socket;
  const secure = socket instanceof TLSSocket ? socket : undefined;
  // A client that has reset its connection already has no address any more.
  const gone = socket.remoteAddress === undefined || socket.remotePort === undefined;
  const rawAddress = gone ? UNKNOWN : plain(socket.remoteAddress);
  const rawPort = gone ? 0 : socket.remotePort;
  const said = preambles.of(socket);
  const { address, port } = said?.client ?? { address: rawAddress, port: rawPort };
  const ends: Ends = {
    address: plain(address),
    port,
    rawAddress,
    rawPort,
    localAddress: plain(localAddress),
    localPort: said?.connect?.port ?? localPort,
    serverName: secure === undefined ? sniffed || undefined : secure.servername || "",
    // Read now: once the connection is over, and a log line is written, it is not to be had any more.
    certificate: secure === undefined ? undefined : clientCertificateOf(secure),
    connectHeaders: said?.connect?.headers,
  };
  return new Peer(ends, env, frontend.trusts(ends.address));
}

const UNKNOWN = "unknown";

/** "::ffff:127.0.0.1" is 127.0.0.1. */
function plain(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
