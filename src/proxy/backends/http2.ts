/**
 * The HTTP/2 client: the connections to one target and which of them takes the next request. The most recently opened
 * one with room does; another is opened when none has (proxying.md 4.2).
 */
import type { Socket } from "node:net";
import type { ProxyError } from "../errors.ts";
import { openSocket, type SocketTaker } from "./dial.ts";
import { Http2Call, type StreamSource } from "./http2-call.ts";
import { Http2Connection, type SessionOwner } from "./http2-connection.ts";
import type { Pool, PoolSettings, Settle } from "./pool.ts";
import type { UpstreamRequest, UpstreamTarget } from "./upstream.ts";

const PROTOCOLS = ["h2"];
/** How many requests wait for one connection that is being opened; the upstream has not said how many it takes. */
const WAITING_PER_DIAL = 100;

export class Http2Pool implements Pool, StreamSource, SessionOwner {
  readonly scheme: "http" | "https";
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  readonly #usable: Http2Connection[] = [];
  readonly #all = new Set<Http2Connection>();
  readonly #dials = new Set<Dial>();
  #closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = settings;
    this.scheme = target.tls === undefined ? "http" : "https";
  }

  get empty(): boolean {
    return this.#all.size === 0 && this.#dials.size === 0;
  }

  send(request: UpstreamRequest, settle: Settle): void {
    new Http2Call(this, request, settle).start();
  }

  adopt(socket: Socket): void {
    this.#add(socket, true);
  }

  connect(call: Http2Call, fresh: boolean): void {
    const usable = fresh ? undefined : this.#usable.findLast(hasRoom);
    if (usable !== undefined) {
      call.attach(usable);
      return;
    }
    for (const dial of this.#dials)
      if (dial.calls.length < WAITING_PER_DIAL) {
        dial.calls.push(call);
        return;
      }
    const dial = new Dial(this, call);
    this.#dials.add(dial);
    openSocket(this.#target, PROTOCOLS, this.#settings.resolver, dial);
  }

  /** A socket was opened for these calls. */
  dialled(dial: Dial, socket: Socket): void {
    this.#dials.delete(dial);
    const connection = this.#add(socket, false);
    for (const call of dial.calls) call.attach(connection);
  }

  undialled(dial: Dial): void {
    this.#dials.delete(dial);
  }

  retire(connection: Http2Connection): void {
    const at = this.#usable.indexOf(connection);
    if (at >= 0) this.#usable.splice(at, 1);
  }

  forget(connection: Http2Connection): void {
    this.#all.delete(connection);
  }

  sweep(nowMs: number): void {
    for (const connection of this.#all) {
      const idle = connection.active === 0 && nowMs - connection.idleSinceMs >= this.#settings.idleTimeoutMs;
      if (idle) connection.close();
    }
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#all) connection.discard();
  }

  #add(socket: Socket, connected: boolean): Http2Connection {
    const { connectTimeoutMs } = this.#settings;
    const connection = new Http2Connection(this, socket, { tls: this.scheme === "https", connectTimeoutMs, connected });
    connection.idleSinceMs = performance.now();
    this.#all.add(connection);
    this.#usable.push(connection);
    if (this.#closed) connection.discard();
    return connection;
  }
}

function hasRoom(connection: Http2Connection): boolean {
  return connection.hasRoom;
}

class Dial implements SocketTaker {
  readonly calls: Http2Call[];
  readonly #pool: Http2Pool;

  constructor(pool: Http2Pool, call: Http2Call) {
    this.#pool = pool;
    this.calls = [call];
  }

  get wanted(): boolean {
    const wanted = this.calls.some((call) => !call.over);
    if (!wanted) this.#pool.undialled(this);
    return wanted;
  }

  opened(socket: Socket): void {
    this.#pool.dialled(this, socket);
  }

  failed(error: ProxyError): void {
    this.#pool.undialled(this);
    for (const call of this.calls) call.fail(error);
  }
}
