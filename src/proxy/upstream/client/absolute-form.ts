/**
 * Sends plain HTTP through a forward proxy: request targets in absolute form (RFC 9112 §3.2.2), a Host field that
 * matches, and the proxy's credential on each request. It wraps an HTTP/1.1 pool whose connections end at the proxy.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { ForwardProxy, UpstreamTarget } from "../dial/connection-settings.ts";
import { authorityOf } from "../dial/dial.ts";
import { Http1Pool } from "../http1/pool.ts";
import type { Pool, PoolSettings, Settle } from "../pool.ts";
import type { ConnectionCounts, UpstreamRequest, UpstreamResponse } from "../upstream.ts";

const HTTP_PORT = 80;

export class AbsolutePool implements Pool {
  readonly #pool: Http1Pool;
  readonly #proxy: ForwardProxy;
  readonly #authority: string;

  constructor(target: UpstreamTarget, proxy: ForwardProxy, settings: PoolSettings) {
    this.#proxy = proxy;
    const authority = authorityOf(target);
    this.#authority = target.port === HTTP_PORT ? authority.slice(0, authority.lastIndexOf(":")) : authority;
    this.#pool = new Http1Pool(target, { ...settings, stopsAtProxy: true });
  }

  get empty(): boolean {
    return this.#pool.empty;
  }

  get connections(): ConnectionCounts {
    return this.#pool.connections;
  }

  send(request: UpstreamRequest, settle: Settle): void {
    try {
      this.#pool.send(this.#addressed(request), new ProxiedSettle(settle));
    } catch (error) {
      settle.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  adopt(): never {
    throw new Error("no handshake leads to plain HTTP");
  }

  drain(): void {
    this.#pool.drain();
  }

  sweep(nowMs: number): void {
    this.#pool.sweep(nowMs);
  }

  close(): void {
    this.#pool.close();
  }

  /** @throws ProxyError backend_invalid, endpoint_unavailable, policy_refused */
  #addressed(request: UpstreamRequest): UpstreamRequest {
    const { raw, spelling } = request.headers;
    const headers = new HeaderList([...raw], spelling);
    headers.set("host", this.#authority);
    const { authorization } = this.#proxy.resolve();
    // A value that a client or a policy set was meant for another recipient.
    if (authorization === undefined) headers.remove("proxy-authorization");
    else headers.set("proxy-authorization", authorization);
    const path = request.path === "*" ? "" : request.path;
    return { ...request, path: `http://${this.#authority}${path}`, headers };
  }
}

/** Turns 407 into an error: the proxy asks the gateway for a credential, and the client could not supply it. */
class ProxiedSettle implements Settle {
  readonly #settle: Settle;

  constructor(settle: Settle) {
    this.#settle = settle;
  }

  resolve(response: UpstreamResponse): void {
    if (response.status !== 407) {
      this.#settle.resolve(response);
      return;
    }
    response.body?.destroy();
    this.#settle.reject(new ProxyError("tunnel_unauthorized"));
  }

  reject(error: Error): void {
    this.#settle.reject(error);
  }
}
