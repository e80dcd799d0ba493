/**
 * Accepts the connections of a Bind: reads the preamble in front of the connection, unwraps TLS, checks
 * networkAuthorization, and hands the socket to the protocol server. Binds creates one acceptor per Bind.
 *
 *   socket ─► CONNECT head or PROXY header ─► TLS handshake ─► networkAuthorization ─► HTTP/1.1, HTTP/2 or bytes
 *             (where the Bind expects one)    (HTTPS, TLS)
 *
 * A TLS passthrough listener leaves the handshake to the backend. A CONNECT tunnel enters at the acceptor of the Bind
 * whose port it names, behind the preamble stage: the bytes after its head begin a client's connection.
 */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { Protocol, type ProxyProtocol } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../lib/errors.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import type { Logger } from "../../../lib/log.ts";
import type { ConnectionMeter } from "../../../telemetry/metrics.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { isLoop } from "../../exchange/cdn-loop.ts";
import type { ConnectionPreambles, ConnectionPreamble } from "../preamble/connection-preamble.ts";
import { readConnect } from "../preamble/connect-head.ts";
import type { ProtocolServer, ServedConnection } from "../protocol-server.ts";
import type { Frontend } from "../frontend.ts";
import { peekFirstBytes } from "../preamble/first-bytes.ts";
import { peerOf, type Env, type Peer } from "../peer.ts";
import { acceptByPreface } from "./http2-preface.ts";
import { readProxyHeader } from "../preamble/proxy-header.ts";
import { refuseSocket } from "../refuse-socket.ts";
import type { SecuredConnections } from "./secured.ts";
import { TlsLayer, type BindTls } from "../tls/server-tls.ts";
import type { TcpServer } from "../tcp/server.ts";

export interface AcceptorParts {
  readonly log: Logger;
  readonly clock: Clock;
  readonly env: Env;
  readonly preambles: ConnectionPreambles;
  /** See RequestHead. */
  readonly replica: string;
  /** Returns the settings in force; called anew for each connection. */
  readonly frontend: () => Frontend;
  /** Returns the TLS settings in force; called anew for each connection. */
  readonly tls: () => BindTls;
  readonly secured: SecuredConnections;
  readonly http1: ProtocolServer;
  readonly http2: ProtocolServer;
  readonly tcp: TcpServer;
  readonly meter?: ConnectionMeter | undefined;
  /**
   * Returns the acceptor of the Bind with this port on the same Gateway; internal Binds are reachable only this way.
   */
  readonly bindOf: (port: number) => Acceptor | undefined;
}

export interface Acceptor {
  /** Takes a connection from the network, which begins with the preamble that the Bind expects. */
  accept(socket: Socket): void;
  /** Takes a connection that came through a tunnel, so its preamble has been read already. @param socket paused */
  enter(socket: Socket, preamble: ConnectionPreamble): void;
}

/** A load balancer writes the PROXY header as soon as it connects, so a short limit is enough. */
const PROXY_HEADER_TIMEOUT_MS = 5_000;

/** @throws ConfigError when this version does not know the protocol */
export function acceptorOf(protocol: Protocol, parts: AcceptorParts): Acceptor {
  const serve = unwrapperOf(protocol, parts);
  const acceptor: Acceptor = {
    accept(socket) {
      const { proxyProtocol, connect } = parts.frontend();
      if (connect === "tunnel") acceptTunnel(socket, parts, acceptor);
      else if (proxyProtocol === undefined) serve(socket);
      else acceptProxyHeader(socket, proxyProtocol, parts, serve);
    },
    enter(socket, preamble) {
      parts.preambles.note(socket, preamble);
      serve(socket);
    },
  };
  return acceptor;
}

function acceptTunnel(socket: Socket, parts: AcceptorParts, own: Acceptor): void {
  const { maxFields, headTimeoutMs } = parts.frontend().http1;
  const refuse = (error: ProxyError): void => {
    parts.log.debug("tunnel refused", { peer: socket.remoteAddress ?? "", reason: error.detail ?? error.message });
    refuseSocket(socket, error);
    // Read and drop the remaining bytes: a paused socket never emits `end`.
    socket.resume();
  };
  peekFirstBytes(
    socket,
    (start) => readConnect(start, maxFields),
    (head) => {
      if (head instanceof ProxyError) return refuse(head);
      const { port, headers, bytes } = head;
      const passes = headers.getAll("cdn-loop");
      if (passes.length > 0 && isLoop(passes.join(", "), parts.replica)) return refuse(new ProxyError("loop_detected"));
      const bind = parts.bindOf(port);
      if (bind === undefined) return refuse(new ProxyError("bind_not_found"));
      const preamble = { connect: { port, headers } };
      if (bind !== own) {
        // Each Bind enforces its own networkAuthorization: the target Bind checks later, so check this one here.
        parts.preambles.note(socket, preamble);
        if (!isAdmitted(socket, parts)) return;
      }
      socket.read(bytes);
      socket.write(`HTTP/1.1 200 OK\r\nx-request-id: ${randomUUID()}\r\n\r\n`, "latin1");
      bind.enter(socket, preamble);
    },
    headTimeoutMs,
  );
}

function acceptProxyHeader(
  socket: Socket,
  versions: ProxyProtocol,
  parts: AcceptorParts,
  accept: (socket: Socket) => void,
): void {
  const refuse = (reason: string): void => {
    parts.log.debug("connection refused", { peer: socket.remoteAddress ?? "", reason });
    socket.destroy();
  };
  peekFirstBytes(
    socket,
    (start) => readProxyHeader(start, versions),
    (header) => {
      if (header === "invalid") return refuse("malformed PROXY header");
      if (header === "none" && !versions.optional) return refuse("no PROXY header");
      if (header !== "none") {
        socket.read(header.bytes);
        if (header.client !== undefined) parts.preambles.note(socket, { client: header.client });
      }
      accept(socket);
    },
    versions.optional ? parts.frontend().http1.headTimeoutMs : PROXY_HEADER_TIMEOUT_MS,
  );
}

function unwrapperOf(protocol: Protocol, parts: AcceptorParts): (socket: Socket) => void {
  const { log, clock, tls, frontend, http1, http2, meter } = parts;
  switch (protocol) {
    case Protocol.HTTP:
      return (socket) => {
        if (isAdmitted(socket, parts)) acceptByPreface(socket, parts, frontend().http1.headTimeoutMs);
      };
    case Protocol.HTTPS: {
      const onSecure = (socket: TLSSocket): void => {
        if (!isAdmitted(socket, parts)) return;
        const serverName = (socket.servername || "").toLowerCase();
        parts.secured.add(socket, serverName, (socket.alpnProtocol === "h2" ? http2 : http1).accept(socket), tls());
      };
      const layer = new TlsLayer({ log, clock, tls, protocols: ["h2", "http/1.1"], alerts: true, meter, onSecure });
      return (socket) => layer.accept(socket);
    }
    case Protocol.TLS: {
      const onSecure = (socket: TLSSocket): void =>
        acceptSecured(socket, (socket.servername || "").toLowerCase(), parts);
      const layer = new TlsLayer({ log, clock, tls, protocols: [], alerts: false, meter, onSecure });
      return (socket) => layer.accept(socket, (serverName) => passThrough(socket, serverName, parts));
    }
    case Protocol.TCP:
      return (socket) => void acceptRaw(socket, "", parts);
    default:
      throw new ConfigError("a Bind of a protocol unknown to this version");
  }
}

function isAdmitted(
  socket: Socket,
  parts: AcceptorParts,
  peer: Peer = peerOf(socket, parts, parts.frontend()),
): boolean {
  const reason = parts.frontend().denialReason(peer);
  if (reason === undefined) return true;
  parts.log.debug("connection not authorized", { peer: socket.remoteAddress ?? "", reason });
  socket.destroy();
  return false;
}

function acceptRaw(socket: Socket, serverName: string, parts: AcceptorParts): ServedConnection | undefined {
  const peer = peerOf(socket, parts, parts.frontend(), serverName);
  return isAdmitted(socket, parts, peer) ? parts.tcp.take(socket, peer) : undefined;
}

function acceptSecured(socket: Socket, serverName: string, parts: AcceptorParts): void {
  const served = acceptRaw(socket, serverName, parts);
  if (served !== undefined) parts.secured.add(socket, serverName, served, parts.tls());
}

/** Hands the socket to the backend when the server name selects a passthrough listener. @returns whether it did */
function passThrough(socket: Socket, serverName: string, parts: AcceptorParts): boolean {
  if (parts.tls().find(serverName)?.passthrough !== true) return false;
  acceptSecured(socket, serverName, parts);
  return true;
}
