/**
 * The way out to upstreams: per target a pool of HTTP/1.1 connections, one of HTTP/2 connections, or both. Where the
 * handshake decides (ALPN), one connection asks and the other requests wait for what it learns.
 */
import { toJsonString } from "@bufbuild/protobuf";
import { BackendTcpSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Resolver } from "./dns.ts";
import { Http1Pool } from "./http1.ts";
import { Http2Pool } from "./http2.ts";
import { Negotiation } from "./negotiation.ts";
import type { Pool, PoolSettings, Settle } from "./pool.ts";
import { openRaw } from "./raw-call.ts";
import { tlsKey } from "./tls.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse, UpstreamTarget } from "./upstream.ts";

export interface UpstreamOptions {
  readonly resolver: Resolver;
  /** From the look-up of the name to a usable connection, TLS included. */
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs?: number;
}

const IDLE_TIMEOUT_MS = 90_000;
const SWEEP_MS = 10_000;

export function createUpstream(options: UpstreamOptions): Upstream {
  const origins = new Map<string, Origin>();
  const byTarget = new WeakMap<UpstreamTarget, Origin>();
  const settings: PoolSettings = {
    resolver: options.resolver,
    connectTimeoutMs: options.connectTimeoutMs,
    idleTimeoutMs: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
  };
  const originOf = (target: UpstreamTarget): Origin => {
    const key = originKey(target);
    let origin = origins.get(key);
    if (origin === undefined) origins.set(key, (origin = new Origin(target, settings)));
    byTarget.set(target, origin);
    return origin;
  };
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const origin of origins.values()) origin.sweep(now);
  }, SWEEP_MS);
  sweep.unref();
  return {
    send(target: UpstreamTarget, request: UpstreamRequest): Promise<UpstreamResponse> {
      const origin = byTarget.get(target) ?? originOf(target);
      return new Promise((resolve, reject) => {
        origin.send(request, { resolve, reject });
      });
    },
    open: (target, request) => openRaw(target, request, options),
    close() {
      clearInterval(sweep);
      for (const origin of origins.values()) origin.close();
      origins.clear();
    },
  };
}

function originKey(target: UpstreamTarget): string {
  const place = target.unixPath === "" ? `${target.host} ${target.port}` : `unix ${target.unixPath} ${target.host}`;
  const { tls, tcp } = target;
  return `${place}|${tcp === undefined ? "" : toJsonString(BackendTcpSchema, tcp)}|${tls === undefined ? "" : tlsKey(tls)}`;
}

class Origin {
  readonly #target: UpstreamTarget;
  readonly #settings: PoolSettings;
  #http1: Http1Pool | undefined;
  #http2: Http2Pool | undefined;
  #negotiation: Negotiation | undefined;
  #learned: "http1" | "http2" | undefined;
  #closed = false;

  constructor(target: UpstreamTarget, settings: PoolSettings) {
    this.#target = target;
    this.#settings = { ...settings, connectTimeoutMs: target.tcp?.connectTimeoutMs || settings.connectTimeoutMs };
  }

  send(request: UpstreamRequest, settle: Settle): void {
    const pool = this.#poolFor(request);
    if (pool === undefined) this.#negotiate(request, settle);
    else pool.send(request, settle);
  }

  sweep(nowMs: number): void {
    this.#http1?.sweep(nowMs);
    this.#http2?.sweep(nowMs);
    // What was learned holds while there are connections: an upstream may come back speaking another version.
    if (this.#http1?.empty !== false && this.#http2?.empty !== false) this.#learned = undefined;
  }

  close(): void {
    this.#closed = true;
    this.#http1?.close();
    this.#http2?.close();
    this.#negotiation?.close();
  }

  /** @returns undefined while nobody knows what the upstream speaks */
  #poolFor({ version }: UpstreamRequest): Pool | undefined {
    const { tls } = this.#target;
    // A list of protocols that the user chose is offered as it is, whatever the version.
    if (tls === undefined || (tls.alpn.length === 0 && version !== "negotiated")) return this.#pool(version);
    return this.#learned === undefined ? undefined : this.#pool(this.#learned);
  }

  #pool(version: UpstreamRequest["version"]): Pool {
    return version === "http2"
      ? (this.#http2 ??= new Http2Pool(this.#target, this.#settings))
      : (this.#http1 ??= new Http1Pool(this.#target, this.#settings));
  }

  #negotiate(request: UpstreamRequest, settle: Settle): void {
    this.#negotiation ??= new Negotiation(this.#target, this.#settings, (outcome) => {
      this.#negotiation = undefined;
      if (outcome === undefined || this.#closed) return;
      this.#learned = outcome.version;
      this.#pool(outcome.version).adopt(outcome.socket);
    });
    this.#negotiation.wait(request, settle, this);
  }
}
