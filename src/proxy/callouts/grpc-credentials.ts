/**
 * TLS of a gRPC channel as a BackendTls message wants it. The library's own credentials send an address as a server
 * name, which RFC 6066 forbids, and check names in their own way; here the handshake is the one of every other client.
 */
import type { Socket } from "node:net";
import { connect } from "node:tls";
import { CallCredentials, ChannelCredentials, type experimental } from "@grpc/grpc-js";
import type { BackendTls } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { tlsOptions } from "../backends/tls.ts";

export class TlsCredentials extends ChannelCredentials {
  readonly #tls: BackendTls;
  readonly #host: string;

  /** @param host name or address that the connection goes to */
  constructor(tls: BackendTls, host: string) {
    super();
    this.#tls = tls;
    this.#host = host;
  }

  override _isSecure(): boolean {
    return true;
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
      connect: (socket) => this.#handshake(socket),
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials,
      destroy: () => undefined,
    };
  }

  #handshake(socket: Socket): Promise<experimental.SecureConnectResult> {
    return new Promise((resolve, reject) => {
      const secured = connect({ ...tlsOptions(this.#tls, this.#host), ALPNProtocols: ["h2"], socket });
      secured.once("secureConnect", () => resolve({ socket: secured, secure: true }));
      secured.once("error", reject);
    });
  }
}
