/**
 * The client for all upstreams, which `createProxy` creates once per thread: for each target a pool of HTTP/1.1
 * connections, one of HTTP/2 connections, or both. Where the connection decides the version (ALPN, RFC 7301, or a probe
 * on plain text), one connection finds out and the other requests wait for the result (`Negotiation`).
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { IdentitySource } from "../../spiffe/workload-api.ts";
import { AbsolutePool } from "./absolute-form.ts";
import type { DestinationGuard } from "../dial/destination-guard.ts";
import type { Resolver } from "../dial/dns.ts";
import { Http1Pool } from "../http1/pool.ts";
import { Http2Pool } from "../http2/pool.ts";
import { Negotiation } from "./negotiation.ts";
import type { Pool, PoolSettings, Settle } from "../pool.ts";
import type { ConnectionCounts, Upstream, UpstreamRequest, UpstreamResponse } from "../upstream.ts";
import { openRaw } from "./raw-call.ts";
import { targetKey } from "../target-key.ts";
import type { UpstreamTarget } from "../dial/connection-settings.ts";

export interface UpstreamOptions {
  readonly resolver: Resolver;
  readonly guard: DestinationGuard;
  /** Limit from the look-up of the name to a usable connection, TLS included. */
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs?: number;
  readonly identities?: IdentitySource;
  readonly onConnected?: PoolSettings["onConnected"];
}

const IDLE_TIMEOUT_MS = 90_000;
const LONGEST_SWEEP_MS = 10_000;

export function createUpstream(options: UpstreamOptions): Upstream {
  const origins = new Map<string, Origin>();
  const byTarget = new WeakMap<UpstreamTarget, Origin>();
  const settings: PoolSettings = {
    resolver: options.resolver,
    guard: options.guard,
    connectTimeoutMs: options.connectTimeoutMs,
    idleTimeoutMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
    identities: options.identities,
    onConnected: options.onConnected,
  };
  let closed = false;
  const originOf = (target: UpstreamTarget): Origin => {
    const key = targetKey(target);
    let origin = origins.get(key);
    // Backends can share a target, so the origin must not keep the owner of the first one.
    if (origin === undefined) origins.set(key, (origin = new Origin({ ...target, owner: undefined }, settings)));
    byTarget.set(target, origin);
    if (target.owner !== undefined) origin.owners.add(target.owner);
    return origin;
  };
  const sweep = setInterval(
    () => {
      const now = performance.now();
      for (const [key, origin] of origins) {
        origin.sweep(now);
        // Pods come and go: origins without connections are dropped, so that the map does not grow for ever.
        if (!origin.empty) continue;
        origins.delete(key);
        origin.close();
      }
    },
    Math.min(LONGEST_SWEEP_MS, settings.idleTimeoutMs),
  );
  sweep.unref();
  return {
    send(target: UpstreamTarget, request: UpstreamRequest): Promise<UpstreamResponse> {
      if (closed)
        return Promise.reject(new ProxyError("upstream_unreachable", { detail: "the data plane is closing" }));
      const kept = byTarget.get(target);
      const origin = kept === undefined || kept.closed ? originOf(target) : kept;
      return new Promise((resolve, reject) => {
        origin.send(request, { resolve, reject });
      });
    },
    open: (target, request) => openRaw(target, request, options),
    retire(owner) {
      for (const origin of origins.values()) if (origin.owners.delete(owner)) origin.drain();
    },
    forget(owner) {
      for (const { owners } of origins.values()) owners.delete(owner);
    },
    identityChanged() {
      for (const origin of origins.values()) if (origin.presentsIdentity) origin.drain();
    },
    connections: () => countConnections(origins.values()),
    close() {
      closed = true;
      clearInterval(sweep);
      for (const origin of origins.values()) origin.close();
      origins.clear();
    },
  };
}

function countConnections(origins: Iterable<Origin>): Map<string, ConnectionCounts> {
  const counts = new Map<string, ConnectionCounts>();
  for (const { owners, pools } of origins) {
    const [owner = ""] = owners;
    const known = counts.get(owner);
    const all = [known, ...pools.map((pool) => pool?.connections)];
    const sum = (part: keyof ConnectionCounts): number => all.reduce((total, each) => total + (each?.[part] ?? 0), 0);
    counts.set(owner, { active: sum("active"), idle: sum("idle") });
  }
  return counts;
}

/** The pools of one target and the HTTP version that a negotiation has found for it. */
class Origin {
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  #http1: Http1Pool | undefined;
  #absolute: AbsolutePool | undefined;
  #http2: Http2Pool | undefined;
  #negotiation: Negotiation | undefined;
  #learned: "http1" | "http2" | undefined;
  /** True when the running negotiation began before a `drain`: its connection must not be used. */
  #outdated = false;
  /** Keys of the backends that have used this origin; several backends can lead to one target. */
  readonly owners = new Set<string>();
  closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = settings;
  }

  send(request: UpstreamRequest, settle: Settle): void {
    const pool = this.#poolFor(request);
    if (pool === undefined) this.#negotiate(request, settle);
    else pool.send(request, settle);
  }

  /**
   * Whether connections show the workload identity. A proxied target counts: its proxy is chosen per connection and may
   * require one.
   */
  get presentsIdentity(): boolean {
    return this.#target.tls?.spiffe === true || this.#target.proxy !== undefined;
  }

  drain(): void {
    for (const pool of this.pools) pool?.drain();
    this.#learned = undefined;
    this.#outdated = this.#negotiation !== undefined;
  }

  sweep(nowMs: number): void {
    this.#http1?.sweep(nowMs);
    this.#absolute?.sweep(nowMs);
    this.#http2?.sweep(nowMs);
    // The version is forgotten with the last connection: the upstream may return with another version.
    if (this.#http1?.empty !== false && this.#http2?.empty !== false) this.#learned = undefined;
  }

  get pools(): readonly (Pool | undefined)[] {
    return [this.#http1, this.#absolute, this.#http2];
  }

  get empty(): boolean {
    return this.#negotiation === undefined && this.pools.every((pool) => pool?.empty !== false);
  }

  close(): void {
    this.closed = true;
    this.#http1?.close();
    this.#absolute?.close();
    this.#http2?.close();
    this.#negotiation?.close();
  }

  /** @returns undefined while the version that the upstream speaks is unknown */
  #poolFor({ version, upgrade }: UpstreamRequest): Pool | undefined {
    const { tls, proxy } = this.#target;
    const asks = tls === undefined ? version === "http2_if_spoken" && proxy === undefined : version === "negotiated";
    if (asks) return this.#learned === undefined ? undefined : this.#pool(this.#learned);
    // A proxy can forward plain HTTP/1.1 requests itself; HTTP/2 and upgrades need a tunnel.
    const handsOver = tls === undefined && !isHttp2(version) && upgrade === undefined;
    if (proxy === undefined || proxy.alwaysTunnels || !handsOver) return this.#pool(version);
    return (this.#absolute ??= new AbsolutePool(this.#target, proxy, this.#settings));
  }

  #pool(version: UpstreamRequest["version"]): Pool {
    return isHttp2(version)
      ? (this.#http2 ??= new Http2Pool(this.#target, this.#settings))
      : (this.#http1 ??= new Http1Pool(this.#target, this.#settings));
  }

  #negotiate(request: UpstreamRequest, settle: Settle): void {
    this.#negotiation ??= new Negotiation(this.#target, this.#settings, (outcome) => {
      this.#negotiation = undefined;
      if (outcome === undefined || this.closed) return;
      this.#learned = outcome.version;
      if (this.#outdated) outcome.socket?.destroy();
      else if (outcome.socket !== undefined) this.#pool(outcome.version).adopt(outcome.socket);
      this.#outdated = false;
    });
    this.#negotiation.wait(request, settle, this);
  }
}

function isHttp2(version: UpstreamRequest["version"]): boolean {
  return version === "http2" || version === "http2_if_spoken";
}
