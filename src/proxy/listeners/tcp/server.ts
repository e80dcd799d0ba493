/**
 * The protocol server for bytes (TCPRoute, TLSRoute): dials the backend of each connection that the acceptor admitted,
 * relays bytes both ways (TunnelRelay), and reports one session when both sides have ended.
 *
 * A drain waits for sessions: they end by themselves, or with the sockets of the Bind at the maximum drain time. The
 * gateway does not know the protocol inside, so a session that has to end early (the TLS settings of its listener have
 * changed) ends in its first pause of five seconds.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../../lib/errors.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import { ignore } from "../../../lib/ignore.ts";
import type { Logger } from "../../../lib/log.ts";
import type { ByteDestination } from "../../backends/registry.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Abortable, RoutedExchange } from "../../exchange/exchange.ts";
import type { Reports } from "../../observability/observability.ts";
import type { ServedConnection } from "../protocol-server.ts";
import { TunnelRelay } from "../tunnel-relay.ts";
import type { Peer } from "../peer.ts";

export interface TcpOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly bind: string;
  readonly upstream: Pick<Upstream, "open">;
  /** Selects the backend and notes listener, route and backend in the session as it finds them. @throws ProxyError */
  readonly choose: (activeRequest: TcpSession) => ByteDestination;
  /** Returns the reports settings in force for new connections. */
  readonly reports: () => Reports;
  readonly onFinished: (activeRequest: TcpSession) => void;
}

/** One connection with the values that access log and metrics report about it. */
export class TcpSession {
  readonly peer: Peer;
  readonly reports: Reports;
  readonly startedAtMs: number = performance.now();
  listener: RoutedExchange["listener"];
  route: RoutedExchange["route"] = undefined;
  backend: RoutedExchange["backend"] = undefined;
  endpoint: string | undefined = undefined;
  /** Why the session was refused, or why it broke off. */
  error: ProxyError | undefined = undefined;
  /** True when the client left before the backend was connected. */
  clientGone = false;
  receivedBytes = 0;
  sentBytes = 0;

  constructor(peer: Peer, bind: string, reports: Reports) {
    this.peer = peer;
    this.reports = reports;
    this.listener = { bind, gateway: "", namespace: "", name: "" };
  }

  /** Server name of the TLS handshake in lower case, "" for none. */
  get serverName(): string {
    return this.peer.serverName?.toLowerCase() ?? "";
  }
}

export class TcpServer {
  readonly #options: TcpOptions;

  constructor(options: TcpOptions) {
    this.#options = options;
  }

  /** @param socket paused, holding all bytes that were read ahead */
  take(socket: Socket, peer: Peer): ServedConnection {
    const retirement = new TunnelDrain(this.#options.clock);
    void this.#take(socket, peer, retirement);
    return retirement;
  }

  async #take(socket: Socket, peer: Peer, retirement: TunnelDrain): Promise<void> {
    const { choose, log, bind, reports, onFinished } = this.#options;
    const activeRequest = new TcpSession(peer, bind, reports());
    socket.on("error", ignore);
    try {
      retirement.joined(await this.#connect(socket, choose(activeRequest), activeRequest));
    } catch (error) {
      socket.destroy();
      if (error instanceof ClientGone) activeRequest.clientGone = true;
      else {
        activeRequest.error = error instanceof ProxyError ? error : new ProxyError("internal", { cause: error });
        log.debug("connection refused", { server_name: activeRequest.serverName, reason: messageOf(error) });
      }
      onFinished(activeRequest);
    }
  }

  async #connect(
    socket: Socket,
    { target, name, record }: ByteDestination,
    activeRequest: TcpSession,
  ): Promise<TunnelRelay> {
    activeRequest.endpoint = name;
    const startedMs = performance.now();
    const { open } = this.#options.upstream;
    let upstream: Socket;
    record.begin();
    try {
      upstream = await open(target, {
        deadlineAtMs: undefined,
        timeoutCode: "request_timeout",
        abort: new ClientWatcher(socket),
      });
      record.recordHealthy((performance.now() - startedMs) / 1000);
    } catch (error) {
      if (!(error instanceof ClientGone)) record.recordUnhealthy();
      record.end();
      throw error;
    }
    upstream.on("error", (cause) => {
      activeRequest.error ??= new ProxyError("upstream_broken", { detail: cause.message, cause });
    });
    const relay = new TunnelRelay(socket, upstream, ({ fromClient, fromUpstream }) => {
      record.end();
      activeRequest.receivedBytes = fromClient;
      activeRequest.sentBytes = fromUpstream;
      this.#options.onFinished(activeRequest);
    });
    relay.start();
    return relay;
  }
}

/** Ends a session in the first pause after `retire`, when neither side has sent a byte for PAUSE_MS. */
class TunnelDrain implements ServedConnection {
  readonly #clock: Clock;
  #relay: TunnelRelay | undefined;
  #wanted = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  joined(relay: TunnelRelay): void {
    this.#relay = relay;
    if (this.#wanted) this.#watch(relay);
  }

  retire(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    if (this.#relay !== undefined) this.#watch(this.#relay);
  }

  #watch(relay: TunnelRelay): void {
    const { fromClient, fromUpstream, isOver } = relay;
    if (isOver) return;
    this.#clock.after(PAUSE_MS, () => {
      if (relay.fromClient === fromClient && relay.fromUpstream === fromUpstream) relay.end();
      else this.#watch(relay);
    });
  }
}

/** Longer than most database queries take to respond. */
const PAUSE_MS = 5_000;

class ClientGone extends Error {}

/** Aborts the dial when the client disconnects while the backend is being connected. */
class ClientWatcher {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  onAbort(target: Abortable): void {
    if (this.#socket.destroyed) target.abort(new ClientGone());
    else this.#socket.once("close", () => target.abort(new ClientGone()));
  }
}
