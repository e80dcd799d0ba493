/**
 * The HTTP/1.1 connections to one target, kept alive (RFC 9112 §9.3) and reused last in, first out. `Origin` in
 * client/client.ts creates one pool per target. Choosing an endpoint, a credential or another attempt is the caller's
 * work.
 */
import type { Socket } from "node:net";
import { ProxyError } from "../../exchange/errors.ts";
import { Dial, type DialOwner } from "../dial/dial.ts";
import { Http1Call, type Dialer } from "./call.ts";
import { Http1Connection, type ConnectionOwner } from "./connection.ts";
import { nameOf, type Pool, type PoolSettings, type Settle, type WaitingPlace } from "../pool.ts";
import type { ConnectionCounts, UpstreamRequest } from "../upstream.ts";
import type { UpstreamTarget } from "../dial/connection-settings.ts";

const PROTOCOLS = ["http/1.1"];
const CLOSING = "the data plane is closing";

export class Http1Pool implements Pool, Dialer, ConnectionOwner {
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  readonly #name: string | undefined;
  readonly #idle: Http1Connection[] = [];
  readonly #all = new Set<Http1Connection>();
  readonly #dials = new Set<CallDial>();
  #upgradeTarget: UpstreamTarget | undefined;
  #closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = settings;
    this.#name = nameOf(target);
  }

  get empty(): boolean {
    return this.#all.size === 0 && this.#dials.size === 0;
  }

  get connections(): ConnectionCounts {
    const idle = this.#idle.length;
    return { active: this.#all.size - idle, idle };
  }

  send(request: UpstreamRequest, settle: Settle): void {
    new Http1Call(this, request, settle).start();
  }

  adopt(socket: Socket): void {
    this.release(this.#connection(socket));
  }

  connect(call: Http1Call, fresh: boolean): WaitingPlace | undefined {
    const idle = fresh ? undefined : this.#take();
    if (idle !== undefined) {
      call.attach(idle);
      return undefined;
    }
    const dial = new CallDial(this, call);
    this.#dials.add(dial);
    dial.start(call.request.upgrade === undefined ? this.#target : this.#targetOfUpgrades(), this.#settings);
    return dial;
  }

  /** Ends a dial. @param socket the connection it opened, if any */
  dialled(dial: CallDial, socket: Socket | undefined): void {
    this.#dials.delete(dial);
    if (socket === undefined) return;
    const connection = this.#connection(socket);
    connection.retired = dial.retired;
    dial.call.attach(connection);
  }

  /** The target for upgrades: h2 is removed from a configured ALPN list, because upgrades exist in HTTP/1.1 only. */
  #targetOfUpgrades(): UpstreamTarget {
    const { tls } = this.#target;
    const alpn = tls?.alpn.filter((protocol) => protocol !== "h2") ?? [];
    if (tls === undefined || alpn.length === 0) return this.#target;
    this.#upgradeTarget ??= { ...this.#target, tls: { ...tls, alpn } };
    return this.#upgradeTarget;
  }

  release(connection: Http1Connection): void {
    connection.idleSinceMs = performance.now();
    if (this.#closed || connection.retired) connection.discard();
    else this.#idle.push(connection);
  }

  forget(connection: Http1Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  drain(): void {
    for (const connection of this.#idle.slice()) connection.discard();
    for (const connection of this.#all) connection.retired = true;
    for (const dial of this.#dials) dial.retired = true;
  }

  sweep(nowMs: number): void {
    for (const connection of this.#idle.slice()) if (this.#expired(connection, nowMs)) connection.discard();
  }

  close(): void {
    this.#closed = true;
    for (const dial of this.#dials) dial.failed(new ProxyError("upstream_unreachable", { detail: CLOSING }));
    for (const connection of this.#all) connection.discard();
  }

  /**
   * Takes the most recently used idle connection. It skips connections to addresses that the host name has given up;
   * they stay idle, in case the name returns to them, until `sweep` closes them.
   */
  #take(): Http1Connection | undefined {
    if (this.#idle.length === 0) return undefined;
    const current = this.#name === undefined ? undefined : this.#settings.resolver.known(this.#name);
    for (let at = this.#idle.length - 1; at >= 0; at--) {
      const idle = this.#idle[at];
      if (idle === undefined || current?.has(idle.address) === false) continue;
      this.#idle.splice(at, 1);
      if (idle.keepAliveSeconds === undefined || !this.#expired(idle, performance.now())) return idle;
      idle.discard();
    }
    return undefined;
  }

  /** An announced timeout counts one second less, because the upstream's clock started before ours. */
  #expired(connection: Http1Connection, nowMs: number): boolean {
    const promised = connection.keepAliveSeconds;
    const limit = promised === undefined ? this.#settings.idleTimeoutMs : Math.max(0, promised - 1) * 1000;
    return nowMs - connection.idleSinceMs >= Math.min(limit, this.#settings.idleTimeoutMs);
  }

  #connection(socket: Socket): Http1Connection {
    const connection = new Http1Connection(this, socket);
    this.#all.add(connection);
    return connection;
  }
}

/** Opens a connection for one call, which may end before the connection is open. */
class CallDial implements DialOwner, WaitingPlace {
  readonly call: Http1Call;
  /** True when the connection must close after its call. */
  retired = false;
  readonly #pool: Http1Pool;
  #dial: Dial | undefined;

  constructor(pool: Http1Pool, call: Http1Call) {
    this.#pool = pool;
    this.call = call;
  }

  start(target: UpstreamTarget, settings: PoolSettings): void {
    this.#dial = new Dial(target, PROTOCOLS, settings, this);
    this.#dial.start();
  }

  leave(): void {
    this.#dial?.cancel();
    this.#pool.dialled(this, undefined);
  }

  ready(socket: Socket, protocol: string | undefined): void {
    if (protocol !== "h2") {
      this.#pool.dialled(this, socket);
      return;
    }
    socket.destroy();
    this.failed(new ProxyError("upstream_unreachable", { detail: "upstream chose h2" }));
  }

  failed(error: ProxyError): void {
    this.#dial?.cancel();
    this.#pool.dialled(this, undefined);
    this.call.fail(error);
  }
}
