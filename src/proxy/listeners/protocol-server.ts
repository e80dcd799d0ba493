/**
 * The interface of protocol servers (HTTP/1.1, HTTP/2, bytes) to the acceptor and the Bind, and their common options.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../lib/time/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { DebugTraces } from "../debug-trace/debug-traces.ts";
import type { Outcome } from "../exchange/exchange.ts";
import type { HttpExchange } from "../pipeline/http-exchange.ts";
import type { Chain } from "../pipeline/chain-runner.ts";
import type { ConnectionPreambles } from "./preamble/connection-preamble.ts";
import type { Frontend } from "./frontend.ts";
import type { Env } from "./peer.ts";

export interface ServedConnection {
  /** Asks the client to end the connection: it closes after the responses in flight, or soon when it is idle. */
  retire(): void;
}

export interface ProtocolServer {
  /** @param socket plain, or a TLSSocket after its handshake */
  accept(socket: Socket): ServedConnection;
  /** Asks clients to end each open and each later connection after the responses in flight. */
  announce(): void;
  /** Announces, and closes idle connections. */
  drain(): void;
}

export interface ProtocolServerOptions {
  /** Key of the Bind: "port/namespace/gateway". */
  readonly bind: string;
  /** The CEL variable `env`. */
  readonly env: Env;
  readonly preambles: ConnectionPreambles;
  /** See RequestHead. */
  readonly replica: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Returns the settings in force; called anew for each connection. */
  readonly frontend: () => Frontend;
  /** Entry of the pipeline for every request; it selects the listener of the configuration in force. */
  readonly chain: Chain;
  /** Operators who wait for a request (`/debug/trace`). */
  readonly debugTraces: Pick<DebugTraces, "isWaiting" | "begin">;
  /** Called for each request, before its chain runs. */
  readonly onEntered: (exchange: HttpExchange) => void;
  readonly onFinished: (exchange: HttpExchange, outcome: Outcome) => void;
}
