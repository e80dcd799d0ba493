/**
 * What no connection of the data plane may lead to, whatever backend, policy or client named it: its own admin, metrics and
 * readiness listeners. Compared after the look-up, because any name may have any address. Asked by dials and gRPC channels.
 */
import { isIP } from "node:net";
import type { OwnListeners } from "../../lib/own-listeners.ts";
import { ProxyError } from "../errors.ts";

/** A forward proxy looks names up by itself; this one has one meaning everywhere (RFC 6761 6.3). */
const LOCALHOST = /(?:^|\.)localhost\.?$/i;
const LOOPBACK = ["127.0.0.1", "::1"];

export class DestinationGuard {
  readonly #own: OwnListeners | undefined;

  /** @param own undefined: there are none */
  constructor(own: OwnListeners | undefined) {
    this.#own = own;
  }

  /** @param addresses of one name: one that is refused closes it @throws ProxyError destination_refused */
  check(addresses: readonly string[], port: number): void {
    if (addresses.some((address) => this.#isRefused(address, port))) throw refused();
  }

  /** For a destination that a forward proxy is to look up: as far as its text says where it leads. @throws as `check` */
  checkNamed(host: string, port: number): void {
    if (isIP(host) !== 0) this.check([host], port);
    else if (LOCALHOST.test(host)) this.check(LOOPBACK, port);
  }

  #isRefused(address: string, port: number): boolean {
    return this.#own?.includes(address, port) === true;
  }
}

function refused(): ProxyError {
  return new ProxyError("destination_refused", { detail: "an admin, metrics or readiness listener of our own" });
}
