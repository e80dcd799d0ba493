/**
 * The endpoints of a Service and how well each does (proxying.md 7): two draws, the better score wins. A change of
 * the set keeps the record of every address that stays.
 */
import type { Endpoints } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Connection } from "./connection.ts";
import type { UpstreamTarget } from "./upstream.ts";

const WEIGHT_OF_NEW = 0.3;

export class EndpointState {
  readonly address: string;
  readonly port: number;
  readonly name: string;
  health = 1;
  latencySeconds = 0;
  pending = 0;
  total = 0;
  readonly #targets = new Map<Connection, UpstreamTarget>();

  constructor(address: string, port: number) {
    this.address = address;
    this.port = port;
    this.name = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  get score(): number {
    return this.health / (1 + this.latencySeconds * (1 + 0.1 * this.pending));
  }

  record(healthy: boolean, seconds: number): void {
    this.health = ewma(this.health, healthy ? 1 : 0);
    if (healthy) this.latencySeconds = ewma(this.latencySeconds, seconds);
  }

  /** One target object per way to connect, so that the client finds its pool at once. */
  target(connection: Connection, host: string): UpstreamTarget {
    let target = this.#targets.get(connection);
    if (target === undefined) {
      const { tls } = connection;
      const sni = tls !== undefined && tls.sni === "" && host !== "" ? { ...tls, sni: host } : tls;
      target = { ...connection, host: this.address, port: this.port, unixPath: "", tls: sni };
      if (this.#targets.size > 64) this.#targets.clear();
      this.#targets.set(connection, target);
    }
    return target;
  }
}

export class EndpointSet {
  #ready: readonly EndpointState[] = [];

  get all(): readonly EndpointState[] {
    return this.#ready;
  }

  update(message: Endpoints | undefined): void {
    const known = new Map(this.#ready.map((endpoint) => [endpoint.name, endpoint]));
    const next = new Map<string, EndpointState>();
    for (const { address, port, ready } of message?.endpoints ?? []) {
      if (!ready) continue;
      const fresh = new EndpointState(address, port);
      next.set(fresh.name, known.get(fresh.name) ?? fresh);
    }
    this.#ready = [...next.values()];
  }

  pick(random: () => number = Math.random): EndpointState | undefined {
    const ready = this.#ready;
    const count = ready.length;
    if (count < 2) return ready[0];
    const a = ready[Math.floor(random() * count)] as EndpointState;
    const b = ready[Math.floor(random() * count)] as EndpointState;
    return b.score > a.score ? b : a;
  }
}

function ewma(old: number, value: number): number {
  return old === 0 ? value : WEIGHT_OF_NEW * value + (1 - WEIGHT_OF_NEW) * old;
}
