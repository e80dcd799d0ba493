/**
 * Bytes both ways between a client and a backend (TCPRoute, TLSRoute). In: a connection that may be taken. Out: what the client
 * says to the backend and back, each side's end passed on (joint.ts), and one record when both have ended. A drain waits
 * for them: they end by themselves, or with the sockets of the Bind at the maximum of the drain. Nobody knows what the bytes
 * mean, so that one which is to end (its listener has other TLS settings) does when nothing has been said for a while.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../../lib/errors.ts";
import type { Clock } from "../../../lib/clock.ts";
import { ignore } from "../../../lib/ignore.ts";
import type { Logger } from "../../../lib/log.ts";
import type { ByteDestination } from "../../backends/registry.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import { ProxyError } from "../../errors.ts";
import type { Abortable, RoutedExchange } from "../../pipeline/exchange.ts";
import type { Reports } from "../../observability/observability.ts";
import type { ServedConnection } from "../protocol-server.ts";
import { TunnelRelay } from "./tunnel-relay.ts";
import type { Peer } from "../peer.ts";

export interface TcpOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly bind: string;
  readonly upstream: Pick<Upstream, "open">;
  /** Where the bytes go; the listener, the route and the backend are noted as they are found. @throws ProxyError */
  readonly choose: (activeRequest: TcpSession) => ByteDestination;
  /** What is reported about a connection that comes now. */
  readonly reports: () => Reports;
  readonly onFinished: (activeRequest: TcpSession) => void;
}

/** One connection and what is known about it, for the log. */
export class TcpSession {
  readonly peer: Peer;
  readonly reports: Reports;
  readonly startedAtMs: number = performance.now();
  listener: RoutedExchange["listener"];
  route: RoutedExchange["route"] = undefined;
  backend: RoutedExchange["backend"] = undefined;
  endpoint: string | undefined = undefined;
  /** Why it was refused, or broke off. */
  error: ProxyError | undefined = undefined;
  /** The client went away before there was anybody to talk to. */
  clientGone = false;
  receivedBytes = 0;
  sentBytes = 0;

  constructor(peer: Peer, bind: string, reports: Reports) {
    this.peer = peer;
    this.reports = reports;
    this.listener = { bind, gateway: "", namespace: "", name: "" };
  }

  /** In lower case, "" for none. */
  get serverName(): string {
    return this.peer.serverName?.toLowerCase() ?? "";
  }
}

export class TcpServer {
  readonly #options: TcpOptions;

  constructor(options: TcpOptions) {
    this.#options = options;
  }

  /** @param socket paused; what was read of it is back in it */
  take(socket: Socket, peer: Peer): ServedConnection {
    const retirement = new Retirement(this.#options.clock);
    void this.#take(socket, peer, retirement);
    return retirement;
  }

  async #take(socket: Socket, peer: Peer, retirement: Retirement): Promise<void> {
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
        abort: new Leaver(socket),
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

/** Ends a connection in its first pause after the word. */
class Retirement implements ServedConnection {
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

/** Longer than a question to a database waits for its answer as a rule. */
const PAUSE_MS = 5_000;

class ClientGone extends Error {}

/** A client that leaves while its backend is being called takes the call with it. */
class Leaver {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  onAbort(target: Abortable): void {
    if (this.#socket.destroyed) target.abort(new ClientGone());
    else this.#socket.once("close", () => target.abort(new ClientGone()));
  }
}
