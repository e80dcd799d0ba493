/** Opens connections to upstreams: the look-up of names, TCP or a Unix socket, TLS. Who uses them owns their time limits. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { messageOf } from "../../lib/errors.ts";
import { ProxyError } from "../errors.ts";
import { keepAlive, keepaliveTimes } from "../keepalive.ts";
import type { Resolver } from "./dns.ts";
import { tlsOptions } from "./tls.ts";
import type { UpstreamTarget } from "./upstream.ts";

/** @returns an address for the target, at once where no look-up is needed @throws ProxyError upstream_unreachable */
export function addressOf({ host, unixPath }: UpstreamTarget, resolver: Resolver): string | Promise<string> {
  if (unixPath !== "" || isIP(host) !== 0) return host;
  const address = resolver.resolve(host);
  return typeof address === "string" ? address : address.catch((error: unknown) => unresolved(host, error));
}

/**
 * @param address as `addressOf` gives it
 * @param protocols offered in a handshake (ALPN) where the settings name none
 * @returns a socket that is still connecting: "connect" or "secureConnect" comes when it can be used
 * @throws Error when the system or the TLS settings refuse at once
 */
export function dial(
  { host, port, unixPath, tls, tcp }: UpstreamTarget,
  address: string,
  protocols: readonly string[] = [],
): Socket | TLSSocket {
  const where = unixPath === "" ? { host: address, port } : { path: unixPath };
  const socket = tls === undefined ? connectTcp(where) : connectTls({ ...where, ...tlsOptions(tls, host, protocols) });
  socket.setNoDelay(true);
  keepAlive(socket, keepaliveTimes(tcp?.keepalive));
  return socket;
}

/** Who asked for a socket. */
export interface SocketTaker {
  /** False when nobody waits for the socket any more. */
  readonly wanted: boolean;
  /** The socket is still connecting. */
  opened(socket: Socket): void;
  failed(error: ProxyError): void;
}

/** Both steps, for whoever hears of the outcome by call. */
export function openSocket(
  target: UpstreamTarget,
  protocols: readonly string[],
  resolver: Resolver,
  taker: SocketTaker,
): void {
  const found = addressOf(target, resolver);
  if (typeof found === "string") hand(target, found, protocols, taker);
  else void handLater(target, found, protocols, taker);
}

async function handLater(
  target: UpstreamTarget,
  pending: Promise<string>,
  protocols: readonly string[],
  taker: SocketTaker,
): Promise<void> {
  let address: string;
  try {
    address = await pending;
  } catch (error) {
    taker.failed(error instanceof ProxyError ? error : new ProxyError("internal", { cause: error }));
    return;
  }
  hand(target, address, protocols, taker);
}

function hand(target: UpstreamTarget, address: string, protocols: readonly string[], taker: SocketTaker): void {
  if (!taker.wanted) return;
  let socket: Socket;
  try {
    socket = dial(target, address, protocols);
  } catch (cause) {
    taker.failed(new ProxyError("upstream_unreachable", { detail: messageOf(cause), cause }));
    return;
  }
  taker.opened(socket);
}

function unresolved(host: string, cause: unknown): never {
  throw new ProxyError("upstream_unreachable", { detail: `no address for ${host}: ${messageOf(cause)}`, cause });
}
