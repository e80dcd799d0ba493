/** Opens connections to upstreams: the look-up of names, TCP or a Unix socket, TLS. Who uses them owns their time limits. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import type { Resolver } from "./dns.ts";
import { tlsOptions } from "./tls.ts";
import type { UpstreamTarget } from "./upstream.ts";

const TCP_KEEPALIVE_MS = 180_000;

/** @returns an address for the target, at once where no look-up is needed @throws ProxyError upstream_unreachable */
export function addressOf({ host, unixPath }: UpstreamTarget, resolver: Resolver): string | Promise<string> {
  if (unixPath !== "" || isIP(host) !== 0) return host;
  const address = resolver.resolve(host);
  return typeof address === "string" ? address : address.catch((error: unknown) => unresolved(host, error));
}

/**
 * @param address as `addressOf` gives it
 * @returns a socket that is still connecting: "connect" or "secureConnect" comes when it can be used
 * @throws Error when the system or the TLS settings refuse at once
 */
export function dial({ host, port, unixPath, tls }: UpstreamTarget, address: string): Socket | TLSSocket {
  const where = unixPath === "" ? { host: address, port } : { path: unixPath };
  if (tls === undefined)
    return connectTcp({ ...where, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS });
  const socket = connectTls({ ...where, ...tlsOptions(tls, host) });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, TCP_KEEPALIVE_MS);
  return socket;
}

function unresolved(host: string, cause: unknown): never {
  throw new ProxyError("upstream_unreachable", { detail: `no address for ${host}: ${messageOf(cause)}`, cause });
}
