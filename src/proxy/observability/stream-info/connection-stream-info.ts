/** Describes a finished TCP connection for the access log. */
import type { Scope } from "../../../cel/scope.ts";
import { PROXY_ERRORS } from "../../exchange/errors.ts";
import type { ReportedConnection, RoutedExchange } from "../../exchange/exchange.ts";
import { describeError } from "../../../lib/errors.ts";
import type { StreamInfo } from "./stream-info.ts";
import type { Ids } from "../ids.ts";
import { spiffeIdOf } from "./request-stream-info.ts";

export class ConnectionStreamInfo implements StreamInfo, Scope {
  readonly http = undefined;
  readonly durationMs: number;
  readonly #session: ReportedConnection;
  readonly #ids: Ids;

  constructor(session: ReportedConnection, ids: Ids) {
    this.#session = session;
    this.#ids = ids;
    this.durationMs = performance.now() - session.startedAtMs;
  }

  get scope(): Scope {
    return this;
  }

  /** Provides the expression roots that a connection has, under the names used for requests. */
  root(name: string): unknown {
    const { listener, route, backend, peer } = this.#session;
    switch (name) {
      case "proxy":
        return {
          bind: listener.bind,
          gateway: { namespace: listener.namespace, name: listener.gateway },
          listener: { name: listener.name },
          ...(route === undefined ? {} : { route }),
        };
      case "backend":
        return backend;
      default:
        return peer.root(name);
    }
  }

  get listener(): RoutedExchange["listener"] {
    return this.#session.listener;
  }

  get route(): RoutedExchange["route"] {
    return this.#session.route;
  }

  get endpoint(): string | undefined {
    return this.#session.endpoint;
  }

  get client(): StreamInfo["client"] {
    return this.#session.peer;
  }

  get connectionId(): bigint {
    return this.#ids.ofConnection(this.#session.peer);
  }

  get spiffeId(): string | undefined {
    return spiffeIdOf(this.#session.peer);
  }

  get serverName(): string | undefined {
    return this.#session.serverName === "" ? undefined : this.#session.serverName;
  }

  get protocol(): string {
    return "tcp";
  }

  get error(): string | undefined {
    const { error } = this.#session;
    return error === undefined ? undefined : describeError(error);
  }

  get reason(): string | undefined {
    const { clientGone, error } = this.#session;
    if (clientGone) return "ClientClosed";
    return error === undefined ? undefined : PROXY_ERRORS[error.code].reason;
  }
}
