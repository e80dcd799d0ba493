/**
 * What no connection of the data plane may lead to, whatever backend, policy or client named it: its own admin, metrics and
 * readiness listeners; and, for static backends of a cluster, what is near to the data plane. Addresses are compared after
 * the look-up, because any name may have any address. Asked by dials and gRPC channels.
 */
import { statSync, type Stats } from "node:fs";
import { isIP } from "node:net";
import { Reach } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { isLocalAddress, isLocalHost } from "../../../lib/local-address.ts";
import type { OwnListeners } from "../../../lib/own-listeners.ts";
import { ProxyError } from "../../errors.ts";
import type { UpstreamTarget } from "../upstream.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

const OWN_LISTENER = "an admin, metrics or readiness listener of our own";
const LOCAL_ADDRESS = "an address of loopback or the link, where the controller runs without --allow-local-backends";
const OWN_SOCKET = "the socket of our own workload identity";

export interface GuardOptions {
  readonly ownListeners?: OwnListeners | undefined;
  /** Path of the socket of the SPIFFE workload API. */
  readonly workloadSocket?: string | undefined;
}

type Place = Pick<UpstreamTarget, "port" | "unixPath" | "reach">;

export class DestinationGuard {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions = {}) {
    this.#options = options;
  }

  /** @param addresses of one name: one that is refused closes it @throws ProxyError destination_refused */
  check(addresses: readonly string[], { port, reach }: Pick<Place, "port" | "reach">): void {
    const { ownListeners } = this.#options;
    if (addresses.some((address) => ownListeners?.includes(address, port) === true)) throw refused(OWN_LISTENER);
    if (reach === Reach.REMOTE && addresses.some(isLocalAddress)) throw refused(LOCAL_ADDRESS);
  }

  /** For a destination that a forward proxy is to look up: as far as its text says where it leads. @throws as `check` */
  checkNamed({ host, ...place }: Place & Pick<UpstreamTarget, "host">): void {
    if (isIP(host) !== 0) this.check([host], place);
    else if (isLocalHost(host)) this.check(LOOPBACK, place);
  }

  /** @throws as `check` */
  checkSocket({ unixPath, reach = Reach.UNSPECIFIED }: Place): void {
    const { workloadSocket } = this.#options;
    if (reach === Reach.UNSPECIFIED || workloadSocket === undefined) return;
    // A link, or the root folder of a process, is another path of the same file.
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
