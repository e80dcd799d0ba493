/**
 * Terminates TLS 1.2 and 1.3 for the listeners of a Bind; the acceptor has a TlsLayer per HTTPS or TLS Bind. The
 * listener is chosen by server name (SNI, RFC 6066 §3), and a name that matches no listener, or a listener without a
 * usable certificate, fails the handshake.
 *
 *   socket ─► peek at ClientHello ─► passthrough? the backend's handshake
 *                                └─► node:tls server for the handshake options ─► onSecure
 *
 * node:tls has protocol versions, cipher suites and groups per server, and SNICallback runs too late to change them. So
 * the layer reads the ClientHello itself and keeps one server per set of options. All servers of a BindTls are dropped
 * when the configuration replaces it; handshakes in flight finish with the old one.
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
import type { FrontendTls, ListenerTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import { ConfigError, messageOf } from "../../../lib/errors.ts";
import type { Logger } from "../../../lib/log.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import type { ConnectionMeter } from "../../../telemetry/metrics.ts";
import { helloOf, type ClientHello } from "../preamble/client-hello.ts";
import { peekFirstBytes } from "../preamble/first-bytes.ts";
import { HandshakeLimits } from "./handshake-limits.ts";
import { handshakeOptions, type HandshakeOptions } from "./handshake-options.ts";
import { WorkloadServerTls } from "./workload-server-tls.ts";
import { ignore } from "../../../lib/ignore.ts";
import { hangUp } from "../../../lib/network/hang-up.ts";

/** Says whether clients have to present a trusted certificate. */
export type ClientCertificates = "ignored" | "optional" | "required";

export interface ServerTls {
  /** undefined when there is no usable certificate, so that every handshake fails. */
  readonly context: SecureContext | undefined;
  /** The options that the context was created from. */
  readonly options: SecureContextOptions | undefined;
  readonly clients: ClientCertificates;
  /** undefined when the listener has no options of its own and the Bind's apply. */
  readonly choice: HandshakeOptions | undefined;
  /** True when the backend terminates TLS. */
  readonly passthrough: boolean;
  /** Returns why the client is refused after its handshake. A listener that defines it uses its own client mode. */
  readonly verifyClient: ((socket: TLSSocket) => string | undefined) | undefined;
}

/** TLS settings of a Bind. Every configuration change creates a new object, which TlsLayer detects by identity. */
export interface BindTls {
  /** @param name in lower case; "" when the client sent none */
  find(name: string): ServerTls | undefined;
  /**
   * Returns a text that changes whenever the listener or its TLS settings for this name change, the certificate aside.
   */
  settingsOf(name: string): string | undefined;
  readonly clients: ClientCertificates;
  readonly handshakeTimeoutMs: number;
  /** Handshake options of listeners without options of their own. */
  readonly choice: HandshakeOptions;
  /** ALPN protocols in order of preference; undefined when those of the protocol servers apply. */
  readonly protocols: readonly string[] | undefined;
}

export const HANDSHAKE_TIMEOUT_MS = 15_000;

type Standard = SecureContextOptions | undefined;

/** Cache key for a listener without a policy. */
const USUAL = {};
const compiled = new WeakMap<ListenerTls, WeakMap<object, ServerTls>>();

/**
 * Compiles the TLS settings of a listener, once per listener and policy; a SPIFFE listener is not cached.
 * @throws ConfigError when certificate and key cannot be used
 */
export function compileServerTls(message: ListenerTls, identities: IdentitySource, frontend?: FrontendTls): ServerTls {
  if (message.spiffe) return new WorkloadServerTls(identities, handshakeOptions(message.choice, frontend));
  let made = compiled.get(message);
  if (made === undefined) compiled.set(message, (made = new WeakMap()));
  let tls = made.get(frontend ?? USUAL);
  if (tls === undefined) made.set(frontend ?? USUAL, (tls = compile(message, frontend)));
  return tls;
}

function compile(message: ListenerTls, frontend: FrontendTls | undefined): ServerTls {
  const { certificatePem, privateKeyPem, clientValidation, passthrough } = message;
  const clients: ClientCertificates =
    clientValidation === undefined ? "ignored" : clientValidation.optional ? "optional" : "required";
  const chosen = handshakeOptions(message.choice, frontend);
  const choice = message.choice === undefined ? undefined : chosen;
  const common = { clients, choice, passthrough, verifyClient: undefined };
  if (certificatePem === "") return { ...common, context: undefined, options: undefined };
  const options: SecureContextOptions = {
    cert: certificatePem,
    key: privateKeyPem,
    ...chosen,
    // An empty list trusts no CA; an absent one would trust the system's CAs.
    ca: clientValidation === undefined || clientValidation.caPem === "" ? [] : clientValidation.caPem,
  };
  try {
    return { ...common, context: createSecureContext(options), options };
  } catch (cause) {
    throw new ConfigError(`tls: ${messageOf(cause)}`, { cause });
  }
}

export interface TlsLayerOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Returns the settings in force; called anew for each connection. */
  readonly tls: () => BindTls;
  readonly protocols: readonly string[];
  /** Sends a TLS alert to refused clients. TLS Binds close without one, as the Gateway API requires of TLSRoute. */
  readonly alerts: boolean;
  readonly meter?: Pick<ConnectionMeter, "secured"> | undefined;
  readonly onSecure: (socket: TLSSocket) => void;
}

/** Performs the TLS handshakes of a Bind. A configuration change does not affect a handshake in flight. */
export class TlsLayer {
  readonly #options: TlsLayerOptions;
  #tls: BindTls | undefined;
  readonly #limits: HandshakeLimits;
  readonly #servers = new Map<HandshakeOptions, { readonly server: Server; readonly standard: Standard }>();

  constructor(options: TlsLayerOptions) {
    this.#options = options;
    this.#limits = new HandshakeLimits(options.clock);
  }

  /**
   * @param passOn takes the server name in lower case, "" for none; returns whether it took the socket as passthrough
   */
  accept(socket: Socket, passOn?: (serverName: string) => boolean): void {
    this.#limits.begin(socket, this.#options.tls().handshakeTimeoutMs);
    peekFirstBytes(
      socket,
      helloOf,
      (hello) => {
        const serverName = hello === "invalid" ? undefined : hello.serverName.toLowerCase();
        if (serverName !== undefined && passOn?.(serverName) === true) this.#limits.end(socket);
        else this.#acceptHello(socket, hello);
      },
      undefined,
    );
  }

  /**
   * Chooses the listener before the handshake: SNICallback runs too late for versions, suites and groups, and cannot
   * select the alert.
   * @param socket paused, holding the bytes of the ClientHello
   */
  #acceptHello(socket: Socket, hello: Exclude<ClientHello, "incomplete">): void {
    if (hello === "invalid") {
      socket.destroy();
      return;
    }
    const tls = this.#options.tls();
    const listener = tls.find(hello.serverName.toLowerCase());
    if (listener?.context !== undefined) this.#shake(socket, tls, listener);
    else this.#refuse(socket, hello.serverName, listener !== undefined);
  }

  #refuse(socket: Socket, serverName: string, isKnown: boolean): void {
    const reason = isKnown ? "no usable certificate" : "no listener of this name";
    this.#options.log.debug("handshake refused", { peer: socket.remoteAddress ?? "", server_name: serverName, reason });
    if (this.#options.alerts) refuseHandshake(socket, isKnown ? ALERT.handshakeFailure : ALERT.unrecognizedName);
    else socket.destroy();
  }

  #shake(socket: Socket, tls: BindTls, listener: ServerTls): void {
    if (this.#tls !== tls) this.#servers.clear();
    this.#tls = tls;
    const choice = listener.choice ?? tls.choice;
    // Certificate for clients without a server name. A new SPIFFE identity gives a new object and thus a new server.
    const standard = tls.find("")?.options;
    let kept = this.#servers.get(choice);
    if (kept === undefined || kept.standard !== standard) {
      const clients = listener.verifyClient === undefined ? tls.clients : listener.clients;
      kept = { server: this.#createServer(tls, choice, standard, clients), standard };
      this.#servers.set(choice, kept);
    }
    kept.server.emit("connection", socket);
  }

  #createServer(tls: BindTls, choice: HandshakeOptions, standard: Standard, clients: ClientCertificates): Server {
    const { log, meter, onSecure } = this.#options;
    const limits = this.#limits;
    // Offer ALPN only where this Bind speaks the protocol itself; byte routes leave it to the two ends.
    const protocols = this.#options.protocols.length === 0 ? [] : (tls.protocols ?? this.#options.protocols);
    const server = createServer({
      ...standard,
      ...choice,
      ...(protocols.length === 0 ? {} : { ALPNProtocols: [...protocols] }),
      handshakeTimeout: tls.handshakeTimeoutMs,
      requestCert: clients !== "ignored",
      rejectUnauthorized: clients === "required",
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
    server.on("secureConnection", (socket) => {
      const tookMs = limits.end(socket);
      if (tookMs !== undefined) meter?.secured(tookMs / 1000);
      const name = (socket.servername || "").toLowerCase();
      const reason = tls.find(name)?.verifyClient?.(socket);
      if (reason === undefined) return onSecure(socket);
      log.debug("client refused", { peer: socket.remoteAddress ?? "", server_name: name, reason });
      socket.destroy();
    });
    return server;
  }
}

const ALERT = { handshakeFailure: 40, unrecognizedName: 112 } as const;

const ALERT_RECORD = 21;
const FATAL = 2;

/**
 * Sends a fatal TLS alert in response to a ClientHello (RFC 8446 §6.2).
 * @param socket one to which no byte of a handshake has been written
 */
function refuseHandshake(socket: Socket, alert: (typeof ALERT)[keyof typeof ALERT]): void {
  socket.on("error", ignore);
  socket.write(Buffer.from([ALERT_RECORD, 3, 3, 0, 2, FATAL, alert]));
  // Read and drop the remaining bytes: a paused socket never emits `end`.
  socket.resume();
  hangUp(socket);
}
