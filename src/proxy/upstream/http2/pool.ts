/**
 * The HTTP/2 connections to one target. A request goes to the most recently opened connection with a free stream; when
 * none has one, another connection is opened. `Origin` in client/client.ts creates one pool per target.
 */
import type { Socket } from "node:net";
import { ProxyError } from "../../exchange/errors.ts";
import { Dial, type DialOwner } from "../dial/dial.ts";
import { Http2Call, type StreamSource } from "./call.ts";
import { Http2Connection, type SessionOwner } from "./connection.ts";
import { nameOf, type Pool, type PoolSettings, type Settle, type WaitingPlace } from "../pool.ts";
import type { ConnectionCounts, UpstreamRequest } from "../upstream.ts";
import type { UpstreamTarget } from "../dial/connection-settings.ts";

const PROTOCOLS = ["h2"];
const CLOSING = "the data plane is closing";
/** Maximum of requests that wait for one dial, because the upstream has not yet announced its limit of streams. */
const WAITING_PER_DIAL = 100;

export class Http2Pool implements Pool, StreamSource, SessionOwner {
  readonly scheme: "http" | "https";
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  readonly #name: string | undefined;
  readonly #usable: Http2Connection[] = [];
  readonly #all = new Set<Http2Connection>();
  readonly #dials = new Set<SharedDial>();
  #closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = settings;
    this.#name = nameOf(target);
    this.scheme = target.tls === undefined ? "http" : "https";
  }

  get empty(): boolean {
    return this.#all.size === 0 && this.#dials.size === 0;
  }

  get connections(): ConnectionCounts {
    let active = 0;
    for (const connection of this.#all) if (connection.active > 0) active++;
    return { active, idle: this.#all.size - active };
  }

  send(request: UpstreamRequest, settle: Settle): void {
    new Http2Call(this, request, settle).start();
  }

  adopt(socket: Socket): void {
    this.#add(socket);
  }

  connect(call: Http2Call, fresh: boolean): WaitingPlace | undefined {
    const usable = fresh ? undefined : this.#findUsable();
    if (usable !== undefined) {
      call.attach(usable);
      return undefined;
    }
    for (const dial of this.#dials)
      if (dial.calls.size < WAITING_PER_DIAL) {
        dial.calls.add(call);
        return dial;
      }
    const dial = new SharedDial(this, call);
    this.#dials.add(dial);
    dial.start(this.#target, this.#settings);
    return dial;
  }

  #findUsable(): Http2Connection | undefined {
    if (this.#usable.length === 0) return undefined;
    const current = this.#name === undefined ? undefined : this.#settings.resolver.known(this.#name);
    for (let at = this.#usable.length - 1; at >= 0; at--) {
      const connection = this.#usable[at];
      if (connection?.hasRoom === true && current?.has(connection.address) !== false) return connection;
    }
    return undefined;
  }

  /** Ends a dial. @param socket the connection it opened for its calls, if any */
  dialled(dial: SharedDial, socket: Socket | undefined): void {
    this.#dials.delete(dial);
    if (socket === undefined) return;
    const connection = this.#add(socket);
    for (const call of dial.calls) call.attach(connection);
    if (dial.retired) connection.close();
  }

  retire(connection: Http2Connection): void {
    const at = this.#usable.indexOf(connection);
    if (at >= 0) this.#usable.splice(at, 1);
  }

  forget(connection: Http2Connection): void {
    this.#all.delete(connection);
  }

  drain(): void {
    for (const connection of this.#all) connection.close();
    for (const dial of this.#dials) dial.retired = true;
  }

  sweep(nowMs: number): void {
    for (const connection of this.#all) {
      const idle = connection.active === 0 && nowMs - connection.idleSinceMs >= this.#settings.idleTimeoutMs;
      if (idle) connection.close();
    }
  }

  close(): void {
    this.#closed = true;
    for (const dial of this.#dials) dial.failed(new ProxyError("upstream_unreachable", { detail: CLOSING }));
    for (const connection of this.#all) connection.discard();
  }

  #add(socket: Socket): Http2Connection {
    const connection = new Http2Connection(this, socket, this.scheme);
    connection.idleSinceMs = performance.now();
    this.#all.add(connection);
    this.#usable.push(connection);
    if (this.#closed) connection.discard();
    return connection;
  }
}

/** Opens one connection for several calls, each of which may end before the connection is open. */
class SharedDial implements DialOwner, WaitingPlace {
  readonly calls: Set<Http2Call>;
  /** True when the connection must close after the calls that wait for it. */
  retired = false;
  readonly #pool: Http2Pool;
  #dial: Dial | undefined;

  constructor(pool: Http2Pool, call: Http2Call) {
    this.#pool = pool;
    this.calls = new Set([call]);
  }

  start(target: UpstreamTarget, settings: PoolSettings): void {
    this.#dial = new Dial(target, PROTOCOLS, settings, this);
    this.#dial.start();
  }

  leave(call: Http2Call): void {
    this.calls.delete(call);
    if (this.calls.size > 0) return;
    this.#dial?.cancel();
    this.#pool.dialled(this, undefined);
  }

  ready(socket: Socket, protocol: string | undefined): void {
    if (protocol?.startsWith("http/1") !== true) {
      this.#pool.dialled(this, socket);
      return;
    }
    socket.destroy();
    this.failed(new ProxyError("upstream_unreachable", { detail: `upstream chose ${protocol}` }));
  }

  failed(error: ProxyError): void {
    this.#dial?.cancel();
    this.#pool.dialled(this, undefined);
    for (const call of this.calls) call.fail(error);
  }
}
