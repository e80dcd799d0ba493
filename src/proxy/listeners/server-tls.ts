/**
 * TLS towards clients: the certificates of the listeners of one Bind, chosen by server name (RFC 6066 3), versions 1.2 and
 * 1.3. A name that no listener has, and a listener without a usable certificate, end in a failed handshake.
 */
import type { Socket } from "node:net";
import {
  createSecureContext,
  createServer,
  type SecureContext,
  type SecureContextOptions,
  type Server,
  type TLSSocket,
} from "node:tls";
import type { ListenerTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError, messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";

/** Whether clients have to show a certificate that is trusted. */
export type ClientCertificates = "ignored" | "optional" | "required";

export interface ServerTls {
  /** undefined: every handshake fails. */
  readonly context: SecureContext | undefined;
  /** What the context was made of. */
  readonly options: SecureContextOptions | undefined;
  readonly clients: ClientCertificates;
  /** The handshake is the backend's. */
  readonly passthrough: boolean;
}

/** What a Bind needs to shake hands. A change is a new object. */
export interface BindTls {
  /** @param name in lower case; "" when the client sent none */
  find(name: string): ServerTls | undefined;
  readonly clients: ClientCertificates;
}

export const HANDSHAKE_TIMEOUT_MS = 15_000;

const compiled = new WeakMap<ListenerTls, ServerTls>();

/** Made once per message. @throws ConfigError when certificate and key cannot be used */
export function compileServerTls(message: ListenerTls): ServerTls {
  let tls = compiled.get(message);
  if (tls === undefined) compiled.set(message, (tls = compile(message)));
  return tls;
}

function compile({ certificatePem, privateKeyPem, clientValidation, passthrough }: ListenerTls): ServerTls {
  const clients = clientValidation === undefined ? "ignored" : clientValidation.optional ? "optional" : "required";
  if (certificatePem === "") return { context: undefined, options: undefined, clients, passthrough };
  const options: SecureContextOptions = {
    cert: certificatePem,
    key: privateKeyPem,
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    // An empty list, not an absent one: absent would mean the system roots.
    ca: clientValidation === undefined || clientValidation.caPem === "" ? [] : clientValidation.caPem,
  };
  try {
    return { context: createSecureContext(options), options, clients, passthrough };
  } catch (cause) {
    throw new ConfigError(`tls: ${messageOf(cause)}`, { cause });
  }
}

export interface TlsLayerOptions {
  readonly log: Logger;
  /** Asked for every connection. */
  readonly tls: () => BindTls;
  readonly protocols: readonly string[];
  readonly onSecure: (socket: TLSSocket) => void;
}

/** Unwraps connections. A handshake that is under way when the configuration changes goes on with the old one. */
export class TlsLayer {
  readonly #options: TlsLayerOptions;
  #tls: BindTls | undefined;
  #server: Server | undefined;

  constructor(options: TlsLayerOptions) {
    this.#options = options;
  }

  accept(socket: Socket): void {
    const tls = this.#options.tls();
    if (this.#server === undefined || this.#tls !== tls) this.#server = this.#createServer(tls);
    this.#tls = tls;
    this.#server.emit("connection", socket);
  }

  #createServer(tls: BindTls): Server {
    const { log, protocols, onSecure } = this.#options;
    const server = createServer({
      ...tls.find("")?.options,
      ...(protocols.length === 0 ? {} : { ALPNProtocols: [...protocols] }),
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      requestCert: tls.clients !== "ignored",
      rejectUnauthorized: tls.clients === "required",
      SNICallback(name, done) {
        const context = tls.find(name.toLowerCase())?.context;
        if (context === undefined) done(new Error(`no certificate for server name ${name}`));
        else done(null, context);
      },
    });
    server.on("tlsClientError", (error, socket) => {
      log.debug("handshake failed", { peer: socket.remoteAddress ?? "", reason: messageOf(error) });
      socket.destroy();
    });
    server.on("secureConnection", onSecure);
    return server;
  }
}
