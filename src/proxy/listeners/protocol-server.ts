/** What speaks a protocol on connections that are handed to it, and what the engines have in common. */
import type { Socket } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Outcome } from "../pipeline/exchange.ts";
import type { HttpExchange } from "../pipeline/http-exchange.ts";
import type { Chain } from "../pipeline/chain-runner.ts";
import type { ConnectionPreambles } from "./preamble/connection-preamble.ts";
import type { Frontend } from "./frontend.ts";
import type { Env } from "./peer.ts";

/** One connection. */
export interface ServedConnection {
  /** Tells the client to end it; it ends with the answers under way, and soon without one. */
  retire(): void;
}

export interface ProtocolServer {
  /** @param socket plain, or a TLSSocket whose handshake is over */
  accept(socket: Socket): ServedConnection;
  /** From now on each connection is told to end with the answers that are under way, as are those that are still taken. */
  announce(): void;
  /** Announces, and ends those that are idle. */
  drain(): void;
}

export interface ProtocolServerOptions {
  /** Key of the Bind that the connections come from. */
  readonly bind: string;
  /** What expressions see of this process. */
  readonly env: Env;
  readonly preambles: ConnectionPreambles;
  /** As of RequestHead. */
  readonly replica: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Asked for every connection. */
  readonly frontend: () => Frontend;
  /** Where every request enters; asked anew for each. */
  readonly chain: Chain;
  readonly onFinished: (exchange: HttpExchange, outcome: Outcome) => void;
}
