/**
 * The HTTP/1.1 client: one pool of kept-alive connections per target, most recently used first. In: where, what.
 * Out: an answer that streams. Not here: which endpoint, which credential, whether to try another.
 */
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import { addressOf, dial } from "./dial.ts";
import type { Resolver } from "./dns.ts";
import { Http1Call, type Dialer } from "./http1-call.ts";
import { Http1Connection, type ConnectionOwner } from "./http1-connection.ts";
import { tlsKey } from "./tls.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse, UpstreamTarget } from "./upstream.ts";

export interface Http1Options {
  readonly resolver: Resolver;
  /** From the look-up of the name to a usable connection, TLS included. */
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs?: number;
}

const IDLE_TIMEOUT_MS = 90_000;
const SWEEP_MS = 10_000;

export function createHttp1(options: Http1Options): Upstream {
  const pools = new Map<string, Pool>();
  const byTarget = new WeakMap<UpstreamTarget, Pool>();
  const settings: PoolSettings = {
    resolver: options.resolver,
    connectTimeoutMs: options.connectTimeoutMs,
    idleTimeoutMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
  };
  const poolOf = (target: UpstreamTarget): Pool => {
    const key = poolKey(target);
    let pool = pools.get(key);
    if (pool === undefined) pools.set(key, (pool = new Pool(target, settings)));
    byTarget.set(target, pool);
    return pool;
  };
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const pool of pools.values()) pool.sweep(now);
  }, SWEEP_MS);
  sweep.unref();
  return {
    send(target: UpstreamTarget, request: UpstreamRequest): Promise<UpstreamResponse> {
      const pool = byTarget.get(target) ?? poolOf(target);
      return new Promise((resolve, reject) => {
        new Http1Call(pool, request, { resolve, reject }).start();
      });
    },
    close() {
      clearInterval(sweep);
      for (const pool of pools.values()) pool.close();
      pools.clear();
    },
  };
}

function poolKey(target: UpstreamTarget): string {
  const place = target.unixPath === "" ? `${target.host} ${target.port}` : `unix ${target.unixPath} ${target.host}`;
  return target.tls === undefined ? place : `${place} ${tlsKey(target.tls)}`;
}

interface PoolSettings {
  readonly resolver: Resolver;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

class Pool implements Dialer, ConnectionOwner {
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  readonly #idle: Http1Connection[] = [];
  readonly #all = new Set<Http1Connection>();
  #closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = settings;
  }

  connect(call: Http1Call, fresh: boolean): void {
    if (!fresh) {
      const idle = this.#take();
      if (idle !== undefined) {
        call.attach(idle);
        return;
      }
    }
    const address = addressOf(this.#target, this.#settings.resolver);
    if (typeof address === "string") this.#dial(call, address);
    else
      void address.then(
        (found) => this.#dial(call, found),
        (error: Error) => call.fail(error),
      );
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

  #dial(call: Http1Call, address: string): void {
    if (call.over) return;
    try {
      const connection = new Http1Connection(this, dial(this.#target, address), {
        tls: this.#target.tls !== undefined,
        connectTimeoutMs: this.#settings.connectTimeoutMs,
      });
      this.#all.add(connection);
      call.attach(connection);
    } catch (error) {
      call.fail(new ProxyError("upstream_unreachable", { detail: messageOf(error), cause: error }));
    }
  }
}
