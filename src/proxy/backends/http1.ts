/**
 * The HTTP/1.1 client: one pool of kept-alive connections per target, most recently used first. In: where, what.
 * Out: an answer that streams. Not here: which endpoint, which credential, whether to try another.
 */
import type { Socket } from "node:net";
import { openSocket, type SocketTaker } from "./dial.ts";
import { Http1Call, type Dialer } from "./http1-call.ts";
import { Http1Connection, type ConnectionOwner } from "./http1-connection.ts";
import type { Pool, PoolSettings, Settle } from "./pool.ts";
import type { ProxyError } from "../errors.ts";
import type { UpstreamRequest, UpstreamTarget } from "./upstream.ts";

const PROTOCOLS = ["http/1.1"];

export class Http1Pool implements Pool, Dialer, ConnectionOwner {
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  readonly #idle: Http1Connection[] = [];
  readonly #all = new Set<Http1Connection>();
  #closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = settings;
  }

  get empty(): boolean {
    return this.#all.size === 0;
  }

  send(request: UpstreamRequest, settle: Settle): void {
    new Http1Call(this, request, settle).start();
  }

  adopt(socket: Socket): void {
    const connection = this.#connection(socket, true);
    this.release(connection);
  }

  connect(call: Http1Call, fresh: boolean): void {
    const idle = fresh ? undefined : this.#take();
    if (idle !== undefined) call.attach(idle);
    else openSocket(this.#target, PROTOCOLS, this.#settings.resolver, new Dial(this, call));
  }

  /** A socket that was opened for the call. */
  dialled(socket: Socket, call: Http1Call): void {
    call.attach(this.#connection(socket, false));
  }

  release(connection: Http1Connection): void {
    connection.idleSinceMs = performance.now();
    if (this.#closed) connection.discard();
    else this.#idle.push(connection);
  }

  forget(connection: Http1Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  sweep(nowMs: number): void {
    for (const connection of this.#idle.slice()) if (this.#expired(connection, nowMs)) connection.discard();
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#all) connection.discard();
  }

  #take(): Http1Connection | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.keepAliveSeconds === undefined || !this.#expired(idle, performance.now())) return idle;
      idle.discard();
    }
    return undefined;
  }

  /** A second early where the upstream said when it closes: its clock started before ours. */
  #expired(connection: Http1Connection, nowMs: number): boolean {
    const promised = connection.keepAliveSeconds;
    const limit = promised === undefined ? this.#settings.idleTimeoutMs : Math.max(0, promised - 1) * 1000;
    return nowMs - connection.idleSinceMs >= Math.min(limit, this.#settings.idleTimeoutMs);
  }

  #connection(socket: Socket, connected: boolean): Http1Connection {
    const tls = this.#target.tls !== undefined;
    const { connectTimeoutMs } = this.#settings;
    const connection = new Http1Connection(this, socket, { tls, connectTimeoutMs, connected });
    this.#all.add(connection);
    return connection;
  }
}

class Dial implements SocketTaker {
  readonly #pool: Http1Pool;
  readonly #call: Http1Call;

  constructor(pool: Http1Pool, call: Http1Call) {
    this.#pool = pool;
    this.#call = call;
  }

  get wanted(): boolean {
    return !this.#call.over;
  }

  opened(socket: Socket): void {
    this.#pool.dialled(socket, this.#call);
  }

  failed(error: ProxyError): void {
    this.#call.fail(error);
  }
}
