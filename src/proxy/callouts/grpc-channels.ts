/**
 * gRPC connections to external services: one channel per target, shared by all policies and reconnected by the library.
 * Calls in flight, message sizes and the time to detect a dead peer are bounded.
 *
 * Channels are cached by target, proxy and authority, and closed after five minutes without a call. A channel replaces
 * its client in two cases: three timeouts in a row (dead connection), where the old client stops taking calls at once;
 * and a changed workload identity, where the old client gets ten seconds of grace for calls that wait for a connection.
 */
import { Client, type ChannelOptions } from "@grpc/grpc-js";
import { isIP } from "node:net";
import type { ResolvedProxy, UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import type { DestinationGuard } from "../upstream/dial/destination-guard.ts";
import type { Resolver } from "../upstream/dial/dns.ts";
import { targetKey } from "../upstream/target-key.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";
import { CalloutError } from "./callout.ts";
import { guardedNames, namedTarget, namesOption } from "./grpc-names.ts";
import { UpstreamCredentials } from "./grpc-credentials.ts";

/** Calls to one service in flight at the same time. */
export const MAX_IN_FLIGHT = 4096;
/** Streams that nothing waits for any more and that the service has still to end; further ones are reset at once. */
const MAX_LEAVING = 1024;
/** After this many timeouts in a row the connection is taken as dead and replaced. */
const TIMEOUTS_TO_REPLACE = 3;
const FIRST_RECONNECT_MS = 100;
const LAST_RECONNECT_MS = 2_000;
/** Grace for calls on a replaced client; longer than a call waits for a connection. */
const GRACE_MS = 10_000;
const UNUSED_MS = 300_000;
const SWEEP_MS = 60_000;

export interface ChannelSettings {
  readonly maxMessageBytes: number;
  readonly names: Pick<Resolver, "addresses">;
  readonly guard: DestinationGuard;
  readonly identities?: IdentitySource | undefined;
}

export class GrpcChannels {
  readonly #channels = new Map<string, GrpcChannel>();
  readonly #byTarget = new WeakMap<UpstreamTarget, GrpcChannel>();
  readonly #settings: ChannelSettings;
  readonly #sweep: NodeJS.Timeout;

  constructor(settings: ChannelSettings) {
    this.#settings = settings;
    this.#sweep = setInterval(() => this.#closeUnused(), SWEEP_MS);
    this.#sweep.unref();
  }

  /** @param authority value of the `:authority` of calls */
  channel(target: UpstreamTarget, authority: string): GrpcChannel {
    // Pick the proxy endpoint anew for each call, because endpoints come and go.
    if (target.proxy !== undefined) return this.#keyed(target, target.proxy.resolve(), authority);
    let channel = this.#byTarget.get(target);
    if (channel === undefined || channel.closed)
      this.#byTarget.set(target, (channel = this.#keyed(target, undefined, authority)));
    return channel;
  }

  /** @throws ProxyError destination_refused */
  #keyed(target: UpstreamTarget, proxy: ResolvedProxy | undefined, authority: string): GrpcChannel {
    const { guard } = this.#settings;
    if (proxy !== undefined) guard.checkNamed(target);
    const first = proxy?.target ?? target;
    if (first.unixPath !== "") guard.checkSocket(first);
    const key = keyOf(target, proxy, authority);
    let channel = this.#channels.get(key);
    if (channel === undefined) {
      channel = new GrpcChannel({ target, proxy, authority }, this.#settings);
      this.#channels.set(key, channel);
    }
    return channel;
  }

  /** Replaces connections that presented a former workload identity; they take no new call. */
  identityChanged(): void {
    for (const channel of this.#channels.values()) if (channel.presentsIdentity) channel.renew();
  }

  close(): void {
    clearInterval(this.#sweep);
    for (const channel of this.#channels.values()) channel.close();
    this.#channels.clear();
  }

  #closeUnused(): void {
    const before = performance.now() - UNUSED_MS;
    for (const [key, channel] of this.#channels) {
      if (!channel.unusedSince(before)) continue;
      channel.close();
      this.#channels.delete(key);
    }
  }
}

interface ChannelTarget {
  readonly target: UpstreamTarget;
  readonly proxy: ResolvedProxy | undefined;
  /** Value of the `:authority` of calls. */
  readonly authority: string;
}

export class GrpcChannel {
  closed = false;
  readonly presentsIdentity: boolean;
  readonly #open: () => Client;
  #client: Client;
  /** Replaced clients with their remaining calls, and the timer that closes each. */
  readonly #former = new Map<Client, NodeJS.Timeout>();
  #inFlight = 0;
  #leaving = 0;
  #timeouts = 0;
  #usedAtMs = performance.now();

  constructor({ target, proxy, authority }: ChannelTarget, settings: ChannelSettings) {
    const options = optionsOf(authority, (proxy?.target ?? target).destinationScope, settings);
    const security = new UpstreamCredentials(target, proxy, settings.identities);
    this.presentsIdentity = target.tls?.spiffe === true || proxy?.target.tls?.spiffe === true;
    this.#open = () => new Client(addressOf(proxy?.target ?? target), security, options);
    this.#client = this.#open();
  }

  /** Acquires a slot for a call, which `done` releases. @throws CalloutError when too many calls are in flight */
  begin(): Client {
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new CalloutError(`more than ${MAX_IN_FLIGHT} calls in flight`);
    this.#inFlight++;
    this.#usedAtMs = performance.now();
    return this.#client;
  }

  done(outcome: "answered" | "failed" | "timeout"): void {
    this.#inFlight--;
    if (outcome === "answered") this.#timeouts = 0;
    if (outcome !== "timeout" || ++this.#timeouts < TIMEOUTS_TO_REPLACE) return;
    this.#timeouts = 0;
    // Calls in flight on the old client end by their own deadlines.
    this.#client.close();
    this.#client = this.#open();
  }

  /**
   * Counts a stream that the service is left to end. `left` is called when it has.
   * @returns false when there are too many, so that a service that ends none cannot take the slots of all calls
   */
  leave(): boolean {
    if (this.#leaving >= MAX_LEAVING) return false;
    this.#leaving++;
    return true;
  }

  left(): void {
    this.#leaving--;
  }

  /** Opens a new connection for new calls. The former one stays open for calls that wait for it. */
  renew(): void {
    const former = this.#client;
    this.#client = this.#open();
    this.#former.set(former, setTimeout(this.#end.bind(this), GRACE_MS, former).unref());
  }

  #end(former: Client): void {
    clearTimeout(this.#former.get(former));
    this.#former.delete(former);
    former.close();
  }

  unusedSince(ms: number): boolean {
    return this.#inFlight === 0 && this.#usedAtMs < ms;
  }

  close(): void {
    this.closed = true;
    for (const former of this.#former.keys()) this.#end(former);
    this.#client.close();
  }
}

function keyOf(target: UpstreamTarget, proxy: ResolvedProxy | undefined, authority: string): string {
  const via = proxy === undefined ? "" : `${targetKey(proxy.target)} ${proxy.authorization ?? ""}`;
  return `${targetKey(target)} ${via} ${authority}`;
}

function addressOf({ host, port, unixPath }: UpstreamTarget): string {
  if (unixPath !== "") return `unix:${unixPath}`;
  return namedTarget(isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`);
}

function optionsOf(
  authority: string,
  destinationScope: UpstreamTarget["destinationScope"],
  { maxMessageBytes, names, guard }: ChannelSettings,
): ChannelOptions {
  return {
    ...namesOption(guardedNames(names, guard, destinationScope)),
    "grpc.default_authority": authority,
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.max_send_message_length": maxMessageBytes,
    "grpc.initial_reconnect_backoff_ms": FIRST_RECONNECT_MS,
    "grpc.max_reconnect_backoff_ms": LAST_RECONNECT_MS,
    // A retried check could be charged twice against a rate limit.
    "grpc.enable_retries": 0,
    // Ignore http_proxy: an environment variable must not send credentials of clients to a proxy that no policy names.
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
    // Do not share connections between channels: two channels to one address may trust different CAs.
    "grpc.use_local_subchannel_pool": 1,
  };
}
