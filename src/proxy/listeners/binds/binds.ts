/**
 * The open sockets of a data plane, one per Bind. createProxy calls `settle` after each configuration change; it opens
 * sockets for new Binds and drains those of removed Binds until their last connection ends.
 */
import { TaskRegistry, type OpenListener, type Task } from "../tasks.ts";
import type { Bind } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ApplyResult } from "../../../ir/resource.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import { messageOf } from "../../../lib/errors.ts";
import type { Logger } from "../../../lib/log.ts";
import type { ConnectionMeter } from "../../../telemetry/metrics.ts";
import type { ByteDestination } from "../../backends/registry.ts";
import type { Chain } from "../../pipeline/chain-runner.ts";
import { acceptorOf, type Acceptor } from "./acceptor.ts";
import { ConnectionPreambles } from "../preamble/connection-preamble.ts";
import { openBindSocket, withoutSocket, type BindSocket } from "./bind.ts";
import type { ProtocolServerOptions } from "../protocol-server.ts";
import type { Frontend } from "../frontend.ts";
import { createHttp1Server } from "../http1/server.ts";
import { createHttp2Server } from "../http2/server.ts";
import { SecuredConnections } from "./secured.ts";
import type { BindTls } from "../tls/server-tls.ts";
import { TcpServer, type TcpOptions, type TcpSession } from "../tcp/server.ts";

/** The configuration in force, as far as sockets and connections need it. */
interface BindConfiguration {
  /** Returns the Binds by key. */
  binds(): ReadonlyMap<string, Bind>;
  /** Returns the frontend settings of a Bind; the same object until one of its policies changes. */
  frontendOf(bind: string): Frontend;
  /** Returns the chain that every request on a Bind enters. */
  chainOf(bind: string): Chain;
  /** Returns the TLS settings of a Bind; the same object until one of its listeners changes. */
  tlsOf(bind: string): BindTls;
  /** Selects the backend of a TCP session. @throws ProxyError */
  selectByteDestination(bind: Bind, session: TcpSession): ByteDestination;
}

export interface BindsOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly bindAddress: string;
  /** See RequestHead. */
  readonly replica: string;
  readonly podName: string;
  readonly configuration: BindConfiguration;
  readonly upstream: TcpOptions["upstream"];
  readonly debugTraces: ProtocolServerOptions["debugTraces"];
  readonly onFinished: ProtocolServerOptions["onFinished"];
  readonly onConnectionFinished: TcpOptions["onFinished"];
  readonly meterOf: (bind: Bind) => ConnectionMeter | undefined;
  /** Returns the port to open for a Bind; 0 lets the system choose. Rejects when the port may not be opened. */
  readonly portOf: (bind: Bind) => number | Promise<number>;
  /** True when several threads open the same ports. */
  readonly sharesPorts: boolean;
}

interface OpenBind {
  readonly message: Bind;
  readonly socket: BindSocket;
  readonly acceptor: Acceptor;
  readonly secured: SecuredConnections;
}

function describeListener({ message, socket }: OpenBind): OpenListener {
  return {
    bind: message.key,
    gateway: `${message.gateway?.namespace ?? ""}/${message.gateway?.name ?? ""}`,
    port: message.port,
    boundPort: socket.boundPort,
  };
}

export class Binds {
  readonly #options: BindsOptions;
  readonly #tasks = new TaskRegistry();
  readonly #open = new Map<string, OpenBind>();
  /** Sockets of removed Binds whose last connections are still served. */
  readonly #draining = new Set<BindSocket>();
  #announces = false;
  #stopped = false;

  constructor(options: BindsOptions) {
    this.#options = options;
  }

  /** Opens and drains sockets until they match the configuration's Binds. @returns the Binds that cannot be opened */
  async settle(): Promise<ApplyResult["refused"]> {
    const wanted = this.#options.configuration.binds();
    for (const [key, { socket, message }] of this.#open) {
      const now = wanted.get(key);
      const { port, protocol, internal } = message;
      if (now?.port === port && now.protocol === protocol && now.internal === internal) continue;
      this.#open.delete(key);
      this.#draining.add(socket);
      void socket.drain().then(() => this.#draining.delete(socket));
    }
    for (const [key, { secured }] of this.#open) secured.review(this.#options.configuration.tlsOf(key));
    const refused: ApplyResult["refused"][number][] = [];
    for (const bind of wanted.values()) {
      if (this.#open.has(bind.key) || this.#stopped) continue;
      try {
        const opened = await this.#openBind(bind);
        if (this.#announces) opened.socket.announce();
        if (this.#stopped) opened.socket.close();
        else this.#open.set(bind.key, opened);
      } catch (error) {
        const reason = `port ${bind.port} cannot be opened: ${messageOf(error)}`;
        refused.push({ type: "Bind", key: bind.key, reason });
      }
    }
    return refused;
  }

  listeners(): OpenListener[] {
    return this.#openSockets().map(describeListener);
  }

  /** Returns the connections and requests in progress. @param limit of connections */
  tasks(limit: number): { tasks: Task[]; truncated: boolean } {
    const listeners = this.#openSockets().map((open) => ({
      listener: describeListener(open),
      clients: open.socket.clients(),
    }));
    return this.#tasks.list(listeners, limit);
  }

  #openSockets(): OpenBind[] {
    return [...this.#open.values()].filter(({ message }) => !message.internal);
  }

  announce(): void {
    this.#announces = true;
    for (const socket of this.#all()) socket.announce();
  }

  /** Stops accepting; resolves when every connection is gone. */
  async drain(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#all().map((socket) => socket.drain()));
  }

  close(): void {
    this.#stopped = true;
    for (const socket of this.#all()) socket.close();
  }

  #all(): BindSocket[] {
    return [...[...this.#open.values()].map(({ socket }) => socket), ...this.#draining];
  }

  async #openBind(message: Bind): Promise<OpenBind> {
    const { log, clock, bindAddress, replica, podName, configuration, upstream, debugTraces } = this.#options;
    const { key: bind, gateway } = message;
    const port = message.internal ? 0 : await this.#options.portOf(message);
    const env = { podName, namespace: gateway?.namespace ?? "", gateway: gateway?.name ?? "" };
    const frontend = (): Frontend => configuration.frontendOf(bind);
    const onFinished: ProtocolServerOptions["onFinished"] = (exchange, outcome) => {
      this.#tasks.finished(exchange);
      this.#options.onFinished(exchange, outcome);
    };
    const preambles = new ConnectionPreambles();
    const secured = new SecuredConnections();
    const chain = configuration.chainOf(bind);
    const onEntered = this.#tasks.entered.bind(this.#tasks);
    const server = { bind, env, preambles, replica, log, clock, frontend, chain, debugTraces, onEntered, onFinished };
    const http1 = createHttp1Server(server);
    const http2 = createHttp2Server(server);
    const choose = (activeRequest: TcpSession): ByteDestination =>
      configuration.selectByteDestination(message, activeRequest);
    const reports = (): Frontend["reports"] => frontend().reports;
    const tcp = new TcpServer({
      log,
      clock,
      bind,
      upstream,
      choose,
      reports,
      onFinished: this.#options.onConnectionFinished,
    });
    const tls = (): BindTls => configuration.tlsOf(bind);
    // The key of a Bind is "port/namespace/gateway".
    const bindOf = (other: number): Acceptor | undefined =>
      this.#open.get(`${other}${bind.slice(bind.indexOf("/"))}`)?.acceptor;
    const meter = this.#options.meterOf(message);
    const parts = { log, clock, env, preambles, replica, frontend, tls, secured, http1, http2, tcp, meter, bindOf };
    const acceptor = acceptorOf(message.protocol, parts);
    const { accept } = acceptor;
    const reusePort = this.#options.sharesPorts;
    const servers = [http1, http2];
    const open = { address: bindAddress, port, reusePort, frontend, accept, servers, log, meter };
    const socket = message.internal ? withoutSocket(servers) : await openBindSocket(open);
    return { message, socket, acceptor, secured };
  }
}
