/** The facts of a finished TCP connection, for the access log. */
import type { Scope } from "../../cel/scope.ts";
import { PROXY_ERRORS } from "../exchange/errors.ts";
import type { ReportedConnection, RoutedExchange } from "../exchange/exchange.ts";
import { describeError } from "../../lib/errors.ts";
import type { Facts } from "./facts.ts";
import type { Ids } from "./ids.ts";
import { spiffeIdOf } from "./request-facts.ts";

export class ConnectionFacts implements Facts, Scope {
  readonly http = undefined;
  readonly durationMs: number;
  readonly #visit: ReportedConnection;
  readonly #ids: Ids;

  constructor(visit: ReportedConnection, ids: Ids) {
    this.#visit = visit;
    this.#ids = ids;
    this.durationMs = performance.now() - visit.startedAtMs;
  }

  get scope(): Scope {
    return this;
  }

  /** Provides the expression roots that a connection has, under the names used for requests. */
  root(name: string): unknown {
    const { listener, route, backend, peer } = this.#visit;
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
    return this.#visit.listener;
  }

  get route(): RoutedExchange["route"] {
    return this.#visit.route;
  }

  get endpoint(): string | undefined {
    return this.#visit.endpoint;
  }

  get client(): Facts["client"] {
    return this.#visit.peer;
  }

  get connectionId(): bigint {
    return this.#ids.ofConnection(this.#visit.peer);
  }

  get spiffeId(): string | undefined {
    return spiffeIdOf(this.#visit.peer);
  }

  get serverName(): string | undefined {
    return this.#visit.serverName === "" ? undefined : this.#visit.serverName;
  }

  get protocol(): string {
    return "tcp";
  }

  get error(): string | undefined {
    const { error } = this.#visit;
    return error === undefined ? undefined : describeError(error);
  }

  get reason(): string | undefined {
    const { clientGone, error } = this.#visit;
    if (clientGone) return "ClientClosed";
    return error === undefined ? undefined : PROXY_ERRORS[error.code].reason;
  }
}
