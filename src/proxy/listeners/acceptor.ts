/** What happens to a new connection of a Bind, by the Bind's protocol: unwrapping first, then the engine that serves it. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { Protocol } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { readClientHello } from "./client-hello.ts";
import type { Engine } from "./engine.ts";
import { lookAhead } from "./first-bytes.ts";
import { takeByPreface } from "./preface.ts";
import { HANDSHAKE_TIMEOUT_MS, TlsLayer, type BindTls } from "./server-tls.ts";
import type { TcpEngine } from "./tcp.ts";

export interface AcceptorParts {
  readonly log: Logger;
  /** Asked for every connection. */
  readonly tls: () => BindTls;
  readonly http1: Engine;
  readonly http2: Engine;
  readonly tcp: TcpEngine;
}

/** For the first bytes of a plain connection. */
const HEAD_TIMEOUT_MS = 60_000;

/** @throws ConfigError for a protocol that this version does not know */
export function acceptorOf(protocol: Protocol, parts: AcceptorParts): (socket: Socket) => void {
  const { log, tls, tcp, http1, http2 } = parts;
  switch (protocol) {
    case Protocol.HTTP:
      return (socket) => takeByPreface(socket, parts, HEAD_TIMEOUT_MS);
    case Protocol.HTTPS: {
      const onSecure = (socket: TLSSocket): void => (socket.alpnProtocol === "h2" ? http2 : http1).take(socket);
      const layer = new TlsLayer({ log, tls, protocols: ["h2", "http/1.1"], onSecure });
      return (socket) => layer.accept(socket);
    }
    case Protocol.TLS: {
      const onSecure = (socket: TLSSocket): void => void tcp.take(socket, socket.servername || "");
      return acceptByName(parts, new TlsLayer({ log, tls, protocols: [], onSecure }));
    }
    case Protocol.TCP:
      return (socket) => void tcp.take(socket, "");
    default:
      throw new ConfigError("a Bind of a protocol unknown to this version");
  }
}

/** The server name says whether the handshake is ours or the backend's. */
function acceptByName({ tls, tcp }: AcceptorParts, layer: TlsLayer): (socket: Socket) => void {
  return (socket) =>
    lookAhead(
      socket,
      (start) => {
        const hello = readClientHello(start);
        return hello === "incomplete" ? undefined : hello;
      },
      (hello) => {
        if (hello === "invalid") socket.destroy();
        else if (tls().find(hello.serverName)?.passthrough === true) void tcp.take(socket, hello.serverName);
        else layer.accept(socket);
      },
      HANDSHAKE_TIMEOUT_MS,
    );
}
