/**
 * The names of gRPC services, looked up as those of every other upstream (ADR 8): the library would ask the system by itself,
 * past what is known and past the servers that were configured. Channels hand the look-up over in their options.
 */
import { experimental, Metadata, status, type ChannelOptions } from "@grpc/grpc-js";
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import type { DestinationGuard } from "../upstream/dial/destination-guard.ts";
import type { Resolver } from "../upstream/dial/dns.ts";
import type { UpstreamTarget } from "../upstream/upstream.ts";

const SCHEME = "gwproxy";
/** What has this prefix says nothing about a connection. */
const OPTION = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}.gwproxy_names`;

export interface Names {
  /** Where a connection to the port of the host may go. Rejects when there is no such place. */
  addresses(host: string, port: number): Promise<readonly string[]>;
}

/** @param guard of what nothing connects to @param reach of the target that the names are for */
export function guardedNames(
  resolver: Pick<Resolver, "addresses">,
  guard: DestinationGuard,
  reach: UpstreamTarget["reach"],
): Names {
  return {
    async addresses(host, port) {
      const addresses = await resolver.addresses(host);
      guard.check(addresses, { port, reach });
      return addresses;
    },
  };
}

/** @param hostPort a literal of IPv6 in brackets @returns the target of a channel with the options of `namesOption` */
export function namedTarget(hostPort: string): string {
  return `${SCHEME}:${hostPort}`;
}

export function namesOption(names: Names): ChannelOptions {
  return { [OPTION]: names };
}

class NameResolver implements experimental.Resolver {
  readonly #names: Names;
  readonly #place: experimental.HostPort | null;
  readonly #listener: experimental.ResolverListener;
  /** What the library was told last; undefined: nothing, or that there is none. */
  #told: string | undefined;
  #isAsking = false;
  #isOver = false;

  constructor(target: experimental.GrpcUri, listener: experimental.ResolverListener, options: ChannelOptions) {
    this.#place = experimental.splitHostPort(target.path);
    this.#listener = listener;
    this.#names = options[OPTION] as Names; // as namesOption put it there
  }

  static getDefaultAuthority({ path }: experimental.GrpcUri): string {
    return path;
  }

  /** The library asks when it begins and whenever a connection was lost; it comes again by itself after a failure. */
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

  /** @returns undefined where the library knows: to hear the same again it would connect again, and ask again, without end */
  async #endpoints(): Promise<experimental.StatusOr<experimental.Endpoint[]> | undefined> {
    const { host = "", port = 0 } = this.#place ?? {};
    const before = this.#told;
    this.#told = undefined;
    try {
      const addresses = await this.#names.addresses(host, port);
      this.#told = addresses.toSorted().join(" ");
      if (this.#told === before) return undefined;
      return experimental.statusOrFromValue(addresses.map((each) => ({ addresses: [{ host: each, port }] })));
    } catch (error) {
      const cause = error instanceof ProxyError ? (error.detail ?? error.message) : messageOf(error);
      const details = `no address for ${host}: ${cause}`;
      return experimental.statusOrFromError({ code: status.UNAVAILABLE, details, metadata: new Metadata() });
    }
  }
}

experimental.registerResolver(SCHEME, NameResolver);
