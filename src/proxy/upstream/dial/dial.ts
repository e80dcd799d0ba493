/**
 * Opens one connection to an upstream, under a single time limit for all steps. Every connection, for HTTP/1.1, HTTP/2,
 * upgrades and raw bytes alike, is one `Dial`.
 *
 *     direct:        look-up ─▶ guard ─▶ TCP race ─▶ [TLS] ─▶ ready
 *     through proxy: guard for the target's name ─▶ look-up of the proxy ─▶ guard ─▶ TCP race ─▶ [TLS to the proxy]
 *                    ─▶ CONNECT ─▶ [TLS to the target] ─▶ ready
 *
 * A Unix socket needs no look-up and is the only candidate of the race. After `ready` the socket belongs to the
 * owner.
 */
import { isIP, type Socket, type SocketConnectOpts } from "node:net";
import { TLSSocket, type ConnectionOptions } from "node:tls";
import type { BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { messageOf } from "../../../lib/errors.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { keepAlive, keepaliveTimes } from "../../../lib/network/keepalive.ts";
import { requestTunnel } from "./connect-request.ts";
import type { ForwardProxy, UpstreamTarget } from "./connection-settings.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import type { DestinationGuard } from "./destination-guard.ts";
import type { Resolver } from "./dns.ts";
import { handshake, unreachable } from "./handshake.ts";
import { Race } from "./race.ts";
import { tlsOptions } from "./tls.ts";

export interface DialSettings {
  readonly resolver: Resolver;
  readonly guard: DestinationGuard;
  /** Limit from the look-up to a usable connection, for targets that set none. */
  readonly connectTimeoutMs: number;
  /** Source of the workload identity, for settings that require one. */
  readonly identities?: IdentitySource | undefined;
  /** True when the connection ends at the proxy and no tunnel is opened (client/absolute-form.ts). */
  readonly stopsAtProxy?: boolean | undefined;
  /** CDN-Loop field (RFC 8586) for a CONNECT request, as in RawRequest. */
  readonly cdnLoop?: string | undefined;
  /** Called for each connection that can be used. */
  readonly onConnected?: ((transport: Transport, seconds: number) => void) | undefined;
}

/** The kind of path that a connection takes, as a metric label. */
export type Transport = "plaintext" | "tls" | "tunnel" | "tunnel-tls";

const NOTHING = Buffer.alloc(0);

/** Receives the outcome of a dial: once, never before `start` has returned, and not at all after `cancel`. */
export interface DialOwner {
  /** @param socket without listeners @param protocol agreed on by ALPN */
  ready(socket: Socket, protocol: string | undefined): void;
  failed(error: ProxyError): void;
}

export class Dial {
  readonly #target: UpstreamTarget;
  readonly #protocols: readonly string[];
  readonly #settings: DialSettings;
  readonly #owner: DialOwner;
  #startedAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #over = false;
  #cancelled = false;
  #giveUp: ((error: Error) => void) | undefined;
  /** The attempt in progress, and the socket once it is connected: `#end` destroys both. */
  #race: Race | undefined;
  #socket: Socket | undefined;

  /** @param protocols offered by ALPN when the settings list none */
  constructor(target: UpstreamTarget, protocols: readonly string[], settings: DialSettings, owner: DialOwner) {
    this.#target = target;
    this.#protocols = protocols;
    this.#settings = settings;
    this.#owner = owner;
  }

  start(): void {
    const limitMs = this.#target.tcp?.connectTimeoutMs || this.#settings.connectTimeoutMs;
    this.#startedAtMs = performance.now();
    this.#timer = setTimeout(this.#expire.bind(this), limitMs);
    void this.#run();
  }

  cancel(): void {
    if (this.#over) return;
    this.#cancelled = true;
    this.#end();
  }

  #end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#race?.cancel();
    this.#giveUp?.(new Error("given up"));
    this.#socket?.destroy();
  }

  #expire(): void {
    this.#fail(new ProxyError("connect_timeout"));
  }

  #fail(error: ProxyError): void {
    if (this.#over) return;
    this.#end();
    this.#owner.failed(error);
  }

  async #run(): Promise<void> {
    try {
      // Yield once, so that the owner's callbacks never run before `start` has returned.
      await Promise.resolve();
      const socket = await this.#open();
      // A destroyed socket emits no further `close`, so the owner would wait for ever.
      if (socket.destroyed) throw unreachable(new Error("closed by the upstream"));
      if (!this.#over) this.#hand(socket);
    } catch (error) {
      this.#fail(error instanceof ProxyError ? error : new ProxyError("internal", { cause: error }));
    }
  }

  #hand(socket: Socket): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#settings.onConnected?.(this.#transportOf(socket), (performance.now() - this.#startedAtMs) / 1000);
    try {
      this.#owner.ready(socket, protocolOf(socket));
    } catch (cause) {
      socket.destroy();
      this.#owner.failed(new ProxyError("internal", { cause }));
    }
  }

  #transportOf(socket: Socket): Transport {
    const { proxy, tls } = this.#target;
    if (proxy !== undefined && this.#settings.stopsAtProxy !== true) return tls === undefined ? "tunnel" : "tunnel-tls";
    return socket instanceof TLSSocket ? "tls" : "plaintext";
  }

  async #open(): Promise<Socket> {
    const target = this.#target;
    const { tls, host, proxy } = target;
    if (proxy === undefined) {
      const socket = await this.#connect(target);
      return tls === undefined ? socket : handshake(socket, this.#secure(tls, host, this.#protocols));
    }
    if (target.unixPath !== "") throw new ProxyError("backend_invalid", { detail: "no proxy leads to a Unix socket" });
    this.#settings.guard.checkNamed(target);
    const { via, rest } = await this.#through(proxy);
    if (tls !== undefined) {
      if (rest.length > 0) throw new ProxyError("upstream_unreachable", { detail: "spoke before the handshake" });
      return handshake(via, this.#secure(tls, host, this.#protocols));
    }
    if (rest.length > 0) via.unshift(rest);
    return via;
  }

  #secure(tls: BackendTls, host: string, protocols: readonly string[]): ConnectionOptions {
    return tlsOptions(tls, host, protocols, this.#settings.identities);
  }

  /** @returns a tunnel to the target, and the bytes that it has delivered already */
  async #through(proxy: ForwardProxy): Promise<{ readonly via: Socket; readonly rest: Buffer }> {
    const { target: on, authorization, begin } = proxy.resolve();
    const done = begin();
    let healthy = false;
    try {
      const plain = await this.#connect({ ...on, tcp: on.tcp ?? this.#target.tcp });
      // Offer HTTP/1.1 only, because CONNECT is written in HTTP/1.1.
      const via = on.tls === undefined ? plain : await handshake(plain, this.#secure(on.tls, on.host, ["http/1.1"]));
      const { stopsAtProxy = false, cdnLoop } = this.#settings;
      const tunnel = { authority: authorityOf(this.#target), authorization, cdnLoop };
      const rest = stopsAtProxy ? NOTHING : await requestTunnel(via, tunnel);
      healthy = true;
      return { via, rest };
    } finally {
      done(healthy || !this.#cancelled ? healthy : undefined);
    }
  }

  async #connect(target: UpstreamTarget): Promise<Socket> {
    const { tcp } = target;
    const addresses = await this.#socketAddresses(target);
    if (this.#over) throw new ProxyError("connect_timeout");
    const socket = await new Promise<Socket>((resolve, reject) => {
      this.#giveUp = reject;
      // Only HTTP/1.1 uses the shared read buffer. Other sockets are read as streams, which keep the bytes they read:
      // each
      // read would then be copied out of the buffer for nothing.
      const sharesBuffer = this.#protocols.includes("http/1.1");
      this.#race = new Race(addresses, sharesBuffer, { won: resolve, lost: (cause) => reject(unreachable(cause)) });
      this.#race.start();
    });
    this.#socket = socket;
    socket.setNoDelay(true);
    keepAlive(socket, keepaliveTimes(tcp?.keepalive));
    return socket;
  }

  /** @throws ProxyError upstream_unreachable, destination_refused */
  async #socketAddresses(target: UpstreamTarget): Promise<readonly SocketConnectOpts[]> {
    const { host, port, unixPath } = target;
    const { guard } = this.#settings;
    if (unixPath !== "") {
      guard.checkSocket(target);
      return [{ path: unixPath }];
    }
    const addresses = await this.#addresses(host);
    guard.check(addresses, target);
    return addresses.map((address) => ({ host: address, port }));
  }

  async #addresses(host: string): Promise<readonly string[]> {
    try {
      return await this.#settings.resolver.addresses(host);
    } catch (cause) {
      const detail = `no address for ${host}: ${messageOf(cause)}`;
      throw new ProxyError("upstream_unreachable", { detail, cause });
    }
  }
}

/** Returns "host:port" as it is named to a proxy; the gateway does not look it up. */
export function authorityOf({ host, port }: Pick<UpstreamTarget, "host" | "port">): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

function protocolOf(socket: Socket): string | undefined {
  const { alpnProtocol } = socket as Socket & { readonly alpnProtocol?: string | false | null };
  return typeof alpnProtocol === "string" ? alpnProtocol : undefined;
}
