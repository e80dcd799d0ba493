/**
 * Channel credentials for GrpcChannel: once grpc-js has connected a socket, they open a CONNECT tunnel through the
 * proxy and perform the TLS handshake that a BackendTls message describes. The library's own credentials send an IP
 * address as server name, which RFC 6066 §3 forbids, and verify names differently; these use the handshake of all other
 * upstreams.
 */
import type { Socket } from "node:net";
import { CallCredentials, ChannelCredentials, type experimental } from "@grpc/grpc-js";
import { requestTunnel } from "../upstream/dial/connect-request.ts";
import type { ResolvedProxy, UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import { authorityOf } from "../upstream/dial/dial.ts";
import { handshake } from "../upstream/dial/handshake.ts";
import { tlsOptions } from "../upstream/dial/tls.ts";
import { ProxyError } from "../exchange/errors.ts";
import { keepAlive, keepaliveTimes } from "../../lib/network/keepalive.ts";
import type { IdentitySource } from "../spiffe/workload-api.ts";

const PROTOCOLS = ["h2"];

export class UpstreamCredentials extends ChannelCredentials {
  readonly #target: UpstreamTarget;
  readonly #proxy: ResolvedProxy | undefined;
  readonly #identities: IdentitySource | undefined;

  /** @param proxy the library connects to it in place of the target */
  constructor(target: UpstreamTarget, proxy: ResolvedProxy | undefined, identities: IdentitySource | undefined) {
    super();
    this.#target = target;
    this.#proxy = proxy;
    this.#identities = identities;
  }

  override _isSecure(): boolean {
    return this.#target.tls !== undefined;
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this;
  }

  override _createSecureConnector(
    _target: unknown,
    _options: unknown,
    callCredentials: CallCredentials = CallCredentials.createEmpty(),
  ): experimental.SecureConnector {
    return {
      connect: (socket) => this.#connect(socket),
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials,
      destroy: () => undefined,
    };
  }

  async #connect(socket: Socket): Promise<experimental.SecureConnectResult> {
    const { tcp, tls } = this.#target;
    keepAlive(socket, keepaliveTimes(tcp?.keepalive));
    const limitMs = tcp?.connectTimeoutMs ?? 0;
    const timer = limitMs === 0 ? undefined : setTimeout(giveUp, limitMs, socket);
    try {
      const via = this.#proxy === undefined ? socket : await this.#through(socket, this.#proxy);
      if (tls === undefined) return { socket: via, secure: false };
      const options = { ...tlsOptions(tls, this.#target.host, [], this.#identities), ALPNProtocols: PROTOCOLS };
      return { socket: await handshake(via, options), secure: true };
    } catch (error) {
      // The library keeps only the message, so put the detail for the log there in place of the text for clients.
      throw error instanceof ProxyError ? new Error(error.detail ?? error.message, { cause: error }) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #through(socket: Socket, { target, authorization }: ResolvedProxy): Promise<Socket> {
    const { tls, host } = target;
    const options = tls === undefined ? undefined : tlsOptions(tls, host, ["http/1.1"], this.#identities);
    const via = options === undefined ? socket : await handshake(socket, options);
    const rest = await requestTunnel(via, {
      authority: authorityOf(this.#target),
      authorization,
      cdnLoop: undefined,
    });
    if (rest.length === 0) return via;
    if (this.#target.tls !== undefined)
      throw new ProxyError("upstream_unreachable", { detail: "spoke before the handshake" });
    via.unshift(rest);
    return via;
  }
}

function giveUp(socket: Socket): void {
  socket.destroy();
}
