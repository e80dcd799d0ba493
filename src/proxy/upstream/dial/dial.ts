/**
 * Opens one connection to an upstream: the look-up of the name, TCP or a Unix socket, the proxy on the way, TLS. One limit
 * of time holds for all of it. Out: a socket that can be used at once; or an error.
 */
import { isIP, type Socket, type SocketConnectOpts } from "node:net";
import { TLSSocket, type ConnectionOptions } from "node:tls";
import type { BackendTls } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { messageOf } from "../../../lib/errors.ts";
import { ProxyError } from "../../errors.ts";
import { keepAlive, keepaliveTimes } from "../../keepalive.ts";
import { requestTunnel } from "./connect-request.ts";
import type { ForwardProxy } from "../connection-settings.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import type { DestinationGuard } from "./destination-guard.ts";
import type { Resolver } from "./dns.ts";
import { handshake, unreachable } from "./handshake.ts";
import { Race } from "./race.ts";
import { tlsOptions } from "./tls.ts";
import type { UpstreamTarget } from "../upstream.ts";

export interface DialSettings {
  readonly resolver: Resolver;
  readonly guard: DestinationGuard;
  /** From the look-up of the name to a usable connection, where the target says nothing else. */
  readonly connectTimeoutMs: number;
  /** Who we are, where settings want a workload identity. */
  readonly identities?: IdentitySource | undefined;
  /** Where there is a proxy, the connection to it is what is wanted, and not a tunnel through it. */
  readonly stopsAtProxy?: boolean | undefined;
  /** As of RawRequest. */
  readonly cdnLoop?: string | undefined;
  /** Hears of each connection that can be used. */
  readonly onConnected?: ((transport: Transport, seconds: number) => void) | undefined;
}

/** What a connection goes through. */
export type Transport = "plaintext" | "tls" | "tunnel" | "tunnel-tls";

const NOTHING = Buffer.alloc(0);

/** Who asked for a connection. Told once, and not before `start` has returned; not at all after `cancel`. */
export interface DialOwner {
  /** Nobody listens to the socket yet. @param protocol that was agreed on (ALPN) */
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
  /** What is open or being opened. */
  #race: Race | undefined;
  #socket: Socket | undefined;

  /** @param protocols offered in a handshake (ALPN) where the settings name none */
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
      // Owners are told after they have asked, never while they do.
      await Promise.resolve();
      const socket = await this.#open();
      // Nobody would hear it close once more.
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

  /** @returns a tunnel to the target, and what came out of it already */
  async #through(proxy: ForwardProxy): Promise<{ readonly via: Socket; readonly rest: Buffer }> {
    const { target: on, authorization, begin } = proxy.reach();
    const done = begin();
    let healthy = false;
    try {
      const plain = await this.#connect({ ...on, tcp: on.tcp ?? this.#target.tcp });
      // Whatever the proxy would like to speak: a tunnel is asked for in HTTP/1.1.
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
    const places = await this.#places(target);
    if (this.#over) throw new ProxyError("connect_timeout");
    const socket = await new Promise<Socket>((resolve, reject) => {
      this.#giveUp = reject;
      // Bytes of a tunnel go through a stream, which keeps them: a copy of each read would be for nothing.
      const lends = this.#protocols.includes("http/1.1");
      this.#race = new Race(places, lends, { won: resolve, lost: (cause) => reject(unreachable(cause)) });
      this.#race.start();
    });
    this.#socket = socket;
    socket.setNoDelay(true);
    keepAlive(socket, keepaliveTimes(tcp?.keepalive));
    return socket;
  }

  /** @throws ProxyError upstream_unreachable, destination_refused */
  async #places(target: UpstreamTarget): Promise<readonly SocketConnectOpts[]> {
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

/** The destination as it is named to a proxy: never looked up here. */
export function authorityOf({ host, port }: Pick<UpstreamTarget, "host" | "port">): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

function protocolOf(socket: Socket): string | undefined {
  const { alpnProtocol } = socket as Socket & { readonly alpnProtocol?: string | false | null };
  return typeof alpnProtocol === "string" ? alpnProtocol : undefined;
}
