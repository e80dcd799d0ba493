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
import type { FrontendTls, ListenerTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Clock } from "../../../lib/clock.ts";
import { ConfigError, messageOf } from "../../../lib/errors.ts";
import type { Logger } from "../../../lib/log.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import type { ConnectionMeter } from "../../../telemetry/metrics.ts";
import { helloOf, type ClientHello } from "../preamble/client-hello.ts";
import { lookAhead } from "../preamble/first-bytes.ts";
import { HandshakeLimits } from "./handshake-limits.ts";
import { ALERT, refuseHandshake } from "./alert.ts";
import { handshakeOptions, type HandshakeOptions } from "./handshake-options.ts";
import { WorkloadServerTls } from "./workload-server-tls.ts";

/** Whether clients have to show a certificate that is trusted. */
export type ClientCertificates = "ignored" | "optional" | "required";

export interface ServerTls {
  /** undefined: every handshake fails. */
  readonly context: SecureContext | undefined;
  /** What the context was made of. */
  readonly options: SecureContextOptions | undefined;
  readonly clients: ClientCertificates;
  /** undefined: it does not choose for itself. */
  readonly choice: HandshakeOptions | undefined;
  /** The handshake is the backend's. */
  readonly passthrough: boolean;
  /** Says why a client is not let in, once its handshake is over. A listener that has it asks clients by itself. */
  readonly refusal: ((socket: TLSSocket) => string | undefined) | undefined;
}

/** What a Bind needs to shake hands. A change is a new object. */
export interface BindTls {
  /** @param name in lower case; "" when the client sent none */
  find(name: string): ServerTls | undefined;
  /** All that a handshake with the name agrees on, its listener included, but for the certificate. */
  settingsOf(name: string): string | undefined;
  readonly clients: ClientCertificates;
  readonly handshakeTimeoutMs: number;
  /** Of listeners that do not choose for themselves. */
  readonly choice: HandshakeOptions;
  /** The preferred one first; undefined: those of the engines. */
  readonly protocols: readonly string[] | undefined;
}

export const HANDSHAKE_TIMEOUT_MS = 15_000;

type Standard = SecureContextOptions | undefined;

/** What a listener with no policy has. */
const USUAL = {};
const compiled = new WeakMap<ListenerTls, WeakMap<object, ServerTls>>();

/**
 * Made once per listener and policy, unless it follows an identity.
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
  const common = { clients, choice, passthrough, refusal: undefined };
  if (certificatePem === "") return { ...common, context: undefined, options: undefined };
  const options: SecureContextOptions = {
    cert: certificatePem,
    key: privateKeyPem,
    ...chosen,
    // An empty list, not an absent one: absent would mean the system roots.
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
  /** Asked for every connection. */
  readonly tls: () => BindTls;
  readonly protocols: readonly string[];
  /** Whether a client that gets no handshake hears why. Routes of bytes say nothing: the Gateway API wants the end alone. */
  readonly alerts: boolean;
  readonly meter?: Pick<ConnectionMeter, "secured"> | undefined;
  readonly onSecure: (socket: TLSSocket) => void;
}

/** Unwraps connections. A handshake that is under way when the configuration changes goes on with the old one. */
export class TlsLayer {
  readonly #options: TlsLayerOptions;
  #tls: BindTls | undefined;
  readonly #limits: HandshakeLimits;
  readonly #servers = new Map<HandshakeOptions, { readonly server: Server; readonly standard: Standard }>();

  constructor(options: TlsLayerOptions) {
    this.#options = options;
    this.#limits = new HandshakeLimits(options.clock);
  }

  /** @param passOn asked with the server name in lower case, "" for none: whether it took the socket, whose handshake is not ours */
  accept(socket: Socket, passOn?: (serverName: string) => boolean): void {
    this.#limits.begin(socket, this.#options.tls().handshakeTimeoutMs);
    lookAhead(
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
   * SNICallback comes too late for versions, suites and groups, and cannot say which alert a client gets.
   * @param hello that was looked at; the socket is paused and holds its bytes
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
    // What a client without a server name is shown; another identity is another one.
    const standard = tls.find("")?.options;
    let kept = this.#servers.get(choice);
    if (kept === undefined || kept.standard !== standard) {
      const clients = listener.refusal === undefined ? tls.clients : listener.clients;
      kept = { server: this.#createServer(tls, choice, standard, clients), standard };
      this.#servers.set(choice, kept);
    }
    kept.server.emit("connection", socket);
  }

  #createServer(tls: BindTls, choice: HandshakeOptions, standard: Standard, clients: ClientCertificates): Server {
    const { log, meter, onSecure } = this.#options;
    const limits = this.#limits;
    // What is not ours to speak is not ours to agree on.
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
      const reason = tls.find(name)?.refusal?.(socket);
      if (reason === undefined) return onSecure(socket);
      log.debug("client refused", { peer: socket.remoteAddress ?? "", server_name: name, reason });
      socket.destroy();
    });
    return server;
  }
}
