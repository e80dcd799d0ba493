/**
 * The endpoints of a Service, in priority levels by locality (the trafficDistribution of a Service), and the choice
 * among them. A change of the set keeps the state of every endpoint that stays; the statistics of one that returns
 * later are found again by its name. The backend registry owns one set per Service port.
 */
import { Locality, type Endpoint, type Endpoints } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Uint64 } from "../../lib/uint64.ts";
import { hashEndpoint } from "./affinity.ts";
import { PriorityLevel, pickEndpoint, type PickDeps, type BalancedEndpoint, type PickOptions } from "./pick.ts";
import type { ConnectionSettings, UpstreamTarget } from "../upstream/dial/connection-settings.ts";
import type { EndpointStats } from "./endpoint-stats.ts";

/** Location of the data plane; "" where it is unknown. */
export interface ProxyLocality {
  readonly node: string;
  /** Learned from an endpoint on the same node when it is not configured. */
  zone: string;
}

export class EndpointState implements BalancedEndpoint {
  readonly address: string;
  readonly port: number;
  readonly name: string;
  readonly record: EndpointStats;
  capacity = 1;
  #hash: Uint64 | undefined;
  readonly #targets = new Map<ConnectionSettings, UpstreamTarget>();

  constructor(address: string, port: number, record: (name: string) => EndpointStats) {
    this.address = address;
    this.port = port;
    this.name = endpointName(address, port);
    this.record = record(this.name);
  }

  get hash(): Uint64 {
    return (this.#hash ??= hashEndpoint(this.name));
  }

  /** Returns one target object per connection settings, so that the client finds its pool by identity. */
  target(connection: ConnectionSettings, host: string, owner?: string): UpstreamTarget {
    let target = this.#targets.get(connection);
    if (target === undefined) {
      const { tls } = connection;
      const sni = tls !== undefined && tls.sni === "" && host !== "" ? { ...tls, sni: host } : tls;
      target = { ...connection, host: this.address, port: this.port, unixPath: "", tls: sni, owner };
      if (this.#targets.size > 64) this.#targets.clear();
      this.#targets.set(connection, target);
    }
    return target;
  }
}

/** Endpoints that an endpoint picker may choose from. */
export interface OfferedEndpoints {
  /** "address:port" of each. */
  readonly names: readonly string[];
  find(name: string): EndpointState | undefined;
}

export class EndpointSet {
  readonly #locality: ProxyLocality;
  readonly #record: (name: string) => EndpointStats;
  #message: Endpoints | undefined;
  #known: ReadonlyMap<string, EndpointState> = new Map();
  /** Endpoints that are terminating while others are ready; an endpoint picker may still name them. */
  #draining: ReadonlyMap<string, EndpointState> = new Map();
  #readyNames: readonly string[] = [];
  /** The nearest level first. */
  #levels: readonly PriorityLevel<EndpointState>[] = [];

  constructor(locality: ProxyLocality, record: (name: string) => EndpointStats) {
    this.#locality = locality;
    this.#record = record;
  }

  get all(): Iterable<EndpointState> {
    return this.#known.values();
  }

  find(name: string): EndpointState | undefined {
    return this.#known.get(name);
  }

  /** Returns the endpoint of this name, also one that drains: a picker learns of changes at another time. */
  #findPickable(name: string): EndpointState | undefined {
    return this.#known.get(name) ?? this.#draining.get(name);
  }

  /**
   * Offers the endpoints that may be picked now. Those that leave the set while a picker thinks are still found, because
   * a terminating server may serve for longer than that.
   */
  offer(): OfferedEndpoints {
    const known = this.#known;
    return { names: this.#readyNames, find: (name) => this.#findPickable(name) ?? known.get(name) };
  }

  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /** Zone of this node, when an endpoint on the same node reports it. */
  get zone(): string {
    const { node } = this.#locality;
    if (node === "") return "";
    return this.#message?.endpoints.find((endpoint) => endpoint.node === node && endpoint.zone !== "")?.zone ?? "";
  }

  /** Assigns the levels anew after a change of the locality. */
  regroup(): void {
    this.update(this.#message);
  }

  update(message: Endpoints | undefined): void {
    this.#message = message;
    const known = new Map<string, EndpointState>();
    const ranked: EndpointState[][] = [];
    const usable = usableOf(message?.endpoints ?? []);
    const preferences = (message?.preferences ?? []).filter((preference) => this.#isKnown(preference));
    for (const endpoint of usable) {
      const name = endpointName(endpoint.address, endpoint.port);
      if (known.has(name)) continue;
      const state =
        this.#known.get(name) ??
        this.#draining.get(name) ??
        new EndpointState(endpoint.address, endpoint.port, this.#record);
      state.capacity = endpoint.capacity ?? 1;
      known.set(name, state);
      (ranked[this.#distance(endpoint, preferences)] ??= []).push(state);
    }
    const draining = this.#drainingBeside(known, message?.endpoints ?? []);
    for (const states of [this.#known, this.#draining])
      for (const [name, { record }] of states) if (!known.has(name) && !draining.has(name)) record.close();
    this.#known = known;
    this.#draining = draining;
    this.#readyNames = [...known.keys()];
    const nearest = message?.strict === true && preferences.length > 0 ? ranked.slice(0, 1) : ranked;
    this.#levels = nearest.filter((states) => states !== undefined).map((states) => new PriorityLevel(states));
  }

  #drainingBeside(
    known: ReadonlyMap<string, EndpointState>,
    endpoints: readonly Endpoint[],
  ): Map<string, EndpointState> {
    const states = new Map<string, EndpointState>();
    for (const { address, port, draining } of endpoints) {
      const name = endpointName(address, port);
      if (!draining || known.has(name)) continue;
      const state = this.#known.get(name) ?? this.#draining.get(name) ?? new EndpointState(address, port, this.#record);
      states.set(name, state);
    }
    return states;
  }

  pick(pickDeps: PickDeps, pickOptions?: PickOptions): EndpointState | undefined {
    return pickEndpoint(this.#levels, pickDeps, pickOptions);
  }

  /** Number of preferences from the first unmet one on; 0 when the endpoint meets all of them. */
  #distance(endpoint: Endpoint, preferences: readonly Locality[]): number {
    const met = preferences.findIndex((preference) => !this.#isMet(preference, endpoint));
    return met < 0 ? 0 : preferences.length - met;
  }

  /** A data plane that does not know its location ignores the preference. */
  #isKnown(preference: Locality): boolean {
    const { zone, node } = this.#locality;
    return preference !== Locality.UNSPECIFIED && (preference === Locality.NODE ? node : zone) !== "";
  }

  #isMet(preference: Locality, { zone, node, hintedZones }: Endpoint): boolean {
    if (preference === Locality.NODE) return node === this.#locality.node;
    return preference === Locality.ZONE ? zone === this.#locality.zone : hintedZones.includes(this.#locality.zone);
  }
}

/**
 * Draining endpoints serve only when none is ready, so that a rollout without new pods does not refuse all requests.
 */
function usableOf(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  return ready.length > 0 ? ready : endpoints.filter(({ draining }) => draining);
}

function endpointName(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
