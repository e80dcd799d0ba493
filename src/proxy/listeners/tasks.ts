/**
 * The requests in progress on this thread, and the tree of tasks that `/debug/tasks` shows: listeners, their connections,
 * requests, and calls of backends. Listeners note every request when it arrives and when it is over.
 */
import type { HttpExchange } from "../pipeline/http-exchange.ts";

export interface OpenListener {
  readonly bind: string;
  readonly gateway: string;
  /** Port that the Bind declares; `boundPort` is the one that the system opened. */
  readonly port: number;
  readonly boundPort: number;
}

export interface Task {
  readonly kind: "listener" | "connection" | "request" | "call";
  readonly id: string;
  /** Id of the task that it belongs to; null for a listener. */
  readonly parent: string | null;
  readonly name: string;
  readonly state: string;
  /** Unset where it is not known. */
  readonly ageMs?: number;
  readonly children: readonly Task[];
}

/** The open connections of a listener, each as "address:port" of its client. */
export interface ListenerConnections {
  readonly listener: OpenListener;
  readonly clients: readonly string[];
}

/**
 * A list, because a Set is no place for what comes and goes with each request. When a Set is full of deleted entries, V8
 * makes a new table and lets the old one point to it. A table that has survived two minor collections then keeps all
 * later ones until the next full collection, each with the requests of its time: a quarter of what a GET allocated
 * survived, and the GET took half as much processor time again.
 */
export class TaskRegistry {
  readonly #exchanges: HttpExchange[] = [];

  entered(exchange: HttpExchange): void {
    exchange.taskIndex = this.#exchanges.length;
    this.#exchanges.push(exchange);
  }

  /** Fills the place of the request with the last one. */
  finished(exchange: HttpExchange): void {
    const at = exchange.taskIndex;
    if (this.#exchanges[at] !== exchange) return;
    exchange.taskIndex = -1;
    const last = this.#exchanges.pop();
    if (last === undefined || last === exchange) return;
    this.#exchanges[at] = last;
    last.taskIndex = at;
  }

  /** @param limit of connections and requests together */
  list(listeners: readonly ListenerConnections[], limit: number): { tasks: Task[]; truncated: boolean } {
    const nowMs = performance.now();
    const oldestFirst = this.#exchanges.toSorted((a, b) => a.startedAtMs - b.startedAtMs);
    const byClient = Map.groupBy(oldestFirst, ({ listener, source }) => keyOf(listener.bind, clientOf(source)));
    const room = { left: limit };
    const tasks = listeners.map(({ listener, clients }) => {
      const id = `listener/${listener.bind}`;
      const connections = clients.slice(0, room.left);
      room.left -= clients.length;
      return {
        kind: "listener" as const,
        id,
        parent: null,
        name: `${listener.gateway} port ${listener.port}`,
        state: "listening",
        children: connections.map((client) =>
          connectionTask(id, client, byClient.get(keyOf(listener.bind, client)) ?? [], nowMs),
        ),
      };
    });
    return { tasks, truncated: room.left < 0 };
  }
}

/** Requests of one HTTP/2 connection that are listed; the others are counted in its state. */
const MAX_REQUESTS = 100;

function connectionTask(parent: string, client: string, exchanges: readonly HttpExchange[], nowMs: number): Task {
  const id = `${parent}/${client}`;
  return {
    kind: "connection",
    id,
    parent,
    name: client,
    state: exchanges.length === 0 ? "idle" : `${exchanges.length} requests`,
    children: exchanges.slice(0, MAX_REQUESTS).map((exchange) => requestTask(id, exchange, nowMs)),
  };
}

/** Shows the method and the route, and nothing else of what the client has sent: its path may hold secrets. */
function requestTask(parent: string, exchange: HttpExchange, nowMs: number): Task {
  const { method, route, startedAtMs, requestId, reply, endpoint, calledAtMs, answeredAtMs } = exchange;
  const id = `request/${requestId}`;
  const name = route === undefined ? method : `${method} ${route.namespace}/${route.name} ${route.rule}`;
  const state = reply === undefined ? "processing" : "responding";
  const call: Task[] =
    calledAtMs === undefined
      ? []
      : [
          {
            kind: "call",
            id: `${id}/call`,
            parent: id,
            name: endpoint ?? "",
            state: answeredAtMs === undefined ? "waiting" : "answered",
            ageMs: Math.round(nowMs - calledAtMs),
            children: [],
          },
        ];
  return { kind: "request", id, parent, name, state, ageMs: Math.round(nowMs - startedAtMs), children: call };
}

function keyOf(bind: string, client: string): string {
  return `${bind} ${client}`;
}

function clientOf({ address, port }: { readonly address: string; readonly port: number }): string {
  return `${address}:${port}`;
}
