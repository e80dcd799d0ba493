/**
 * A grpc-js name resolver that uses the gateway's own DNS resolver, as all other upstreams do
 * (docs/adr/0008-names-of-upstreams.md). The library would ask the system instead, past the cache and the configured
 * servers. GrpcChannel passes the lookup function in its channel options.
 */
import { experimental, Metadata, status, type ChannelOptions } from "@grpc/grpc-js";
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { DestinationGuard } from "../upstream/dial/destination-guard.ts";
import type { Resolver } from "../upstream/dial/dns.ts";
import type { UpstreamTarget } from "../upstream/dial/connection-settings.ts";

const SCHEME = "gwproxy";
/** An option with this prefix does not distinguish connections. */
const OPTION = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}.gwproxy_names`;

export interface Names {
  /** Returns the addresses that a connection to the host may use. Rejects when there is none. */
  addresses(host: string, port: number): Promise<readonly string[]>;
}

/** @param guard refuses addresses that no traffic may reach @param destinationScope addresses that the target may have */
export function guardedNames(
  resolver: Pick<Resolver, "addresses">,
  guard: DestinationGuard,
  destinationScope: UpstreamTarget["destinationScope"],
): Names {
  return {
    async addresses(host, port) {
      const addresses = await resolver.addresses(host);
      guard.check(addresses, { port, destinationScope });
      return addresses;
    },
  };
}

/** @param hostPort with an IPv6 literal in brackets @returns target for a channel with the options of `namesOption` */
export function namedTarget(hostPort: string): string {
  return `${SCHEME}:${hostPort}`;
}

export function namesOption(names: Names): ChannelOptions {
  return { [OPTION]: names };
}

class NameResolver implements experimental.Resolver {
  readonly #names: Names;
  readonly #hostPort: experimental.HostPort | null;
  readonly #listener: experimental.ResolverListener;
  /** Addresses reported last; undefined before the first report and after a failure. */
  #reported: string | undefined;
  #isAsking = false;
  #isOver = false;

  constructor(target: experimental.GrpcUri, listener: experimental.ResolverListener, options: ChannelOptions) {
    this.#hostPort = experimental.splitHostPort(target.path);
    this.#listener = listener;
    this.#names = options[OPTION] as Names; // `namesOption` put it there
  }

  static getDefaultAuthority({ path }: experimental.GrpcUri): string {
    return path;
  }

  /** Called at the start and after each lost connection; the library calls again by itself after a failure. */
  updateResolution(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    void this.#ask();
  }

  destroy(): void {
    this.#isOver = true;
  }

  async #ask(): Promise<void> {
    const found = await this.#endpoints();
    this.#isAsking = false;
    if (!this.#isOver && found !== undefined) this.#listener(found, {}, null, "");
  }

  /** @returns undefined for unchanged addresses: the library would reconnect and ask again, in an endless loop */
  async #endpoints(): Promise<experimental.StatusOr<experimental.Endpoint[]> | undefined> {
    const { host = "", port = 0 } = this.#hostPort ?? {};
    const before = this.#reported;
    this.#reported = undefined;
    try {
      const addresses = await this.#names.addresses(host, port);
      this.#reported = addresses.toSorted().join(" ");
      if (this.#reported === before) return undefined;
      return experimental.statusOrFromValue(addresses.map((each) => ({ addresses: [{ host: each, port }] })));
    } catch (error) {
      const cause = error instanceof ProxyError ? (error.detail ?? error.message) : messageOf(error);
      const details = `no address for ${host}: ${cause}`;
      return experimental.statusOrFromError({ code: status.UNAVAILABLE, details, metadata: new Metadata() });
    }
  }
}

experimental.registerResolver(SCHEME, NameResolver);
