/**
 * Refuses destinations that no connection of the data plane may have, whichever backend, policy or client named them:
 * its own admin, metrics and readiness listeners, and, for static backends of a cluster, loopback and link-local
 * addresses (server-side request forgery). Addresses are checked after the look-up, because any name can resolve to any
 * address (DNS rebinding). Dials and gRPC channels consult it.
 */
import { statSync, type Stats } from "node:fs";
import { isIP } from "node:net";
import { DestinationScope } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isLocalAddress, isLocalHost } from "../../../lib/network/local-address.ts";
import type { OwnListeners } from "../../../lib/network/own-listeners.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { UpstreamTarget } from "./connection-settings.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

const OWN_LISTENER = "an admin, metrics or readiness listener of our own";
const LOCAL_ADDRESS = "an address of loopback or the link, where the controller runs without --allow-local-backends";
const OWN_SOCKET = "the socket of our own workload identity";

export interface GuardOptions {
  readonly ownListeners?: OwnListeners | undefined;
  /** Path of the Unix socket of the SPIFFE Workload API. */
  readonly workloadSocket?: string | undefined;
}

type GuardedTarget = Pick<UpstreamTarget, "port" | "unixPath" | "destinationScope">;

export class DestinationGuard {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions = {}) {
    this.#options = options;
  }

  /**
   * @param addresses all addresses of one name: one refused address refuses the name
   * @throws ProxyError destination_refused
   */
  check(
    addresses: readonly string[],
    { port, destinationScope }: Pick<GuardedTarget, "port" | "destinationScope">,
  ): void {
    const { ownListeners } = this.#options;
    if (addresses.some((address) => ownListeners?.includes(address, port) === true)) throw refused(OWN_LISTENER);
    if (destinationScope === DestinationScope.REMOTE && addresses.some(isLocalAddress)) throw refused(LOCAL_ADDRESS);
  }

  /**
   * Checks a destination that a forward proxy will look up, as far as its text shows where it leads.
   * @throws as `check`
   */
  checkNamed({ host, ...place }: GuardedTarget & Pick<UpstreamTarget, "host">): void {
    if (isIP(host) !== 0) this.check([host], place);
    else if (isLocalHost(host)) this.check(LOOPBACK, place);
  }

  /** @throws as `check` */
  checkSocket({ unixPath, destinationScope = DestinationScope.UNSPECIFIED }: GuardedTarget): void {
    const { workloadSocket } = this.#options;
    if (destinationScope === DestinationScope.UNSPECIFIED || workloadSocket === undefined) return;
    // A link, or a path through another root such as /proc/<pid>/root, names the same file.
    if (unixPath === workloadSocket || isSameFile(statOf(unixPath), statOf(workloadSocket))) throw refused(OWN_SOCKET);
  }
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSameFile(one: Stats | undefined, other: Stats | undefined): boolean {
  return one !== undefined && one.dev === other?.dev && one.ino === other.ino;
}

function refused(detail: string): ProxyError {
  return new ProxyError("destination_refused", { detail });
}
