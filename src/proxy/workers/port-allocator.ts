/**
 * Which port each Bind has, for workers that open it together. Ports that are shared can be opened by anybody, who would
 * then silently get a part of the connections: so each is opened alone once before.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";

interface Given {
  /** Of the Bind. */
  readonly port: number;
  /** What is opened for it. */
  readonly bound: Promise<number>;
  opened: number | undefined;
}

export class PortAllocator {
  readonly #address: string;
  readonly #ports: (bindPort: number) => number;
  readonly #given = new Map<string, Given>();
  #wanted: ReadonlyMap<string, number> = new Map();
  /** Keep what the system chose from being chosen again before the first worker has it. */
  #keepers: Server[] = [];

  /** @param ports the port to open for a Bind's port; 0 lets the system choose */
  constructor(address: string, ports: (bindPort: number) => number) {
    this.#address = address;
    this.#ports = ports;
  }

  /** The workers begin to open and close. @param wanted the Binds that are to be open then, with their ports */
  expect(wanted: ReadonlyMap<string, number>): void {
    this.#wanted = wanted;
  }

  /** The same answer for all workers. @throws the listen error (EADDRINUSE, EACCES) */
  portOf(bind: string, port: number): Promise<number> {
    const known = this.#given.get(bind);
    if (known?.port === port) return known.bound;
    const given: Given = { port, bound: this.#choose(bind, this.#ports(port)), opened: undefined };
    given.bound.then(
      (opened) => (given.opened = opened),
      () => undefined,
    );
    this.#given.set(bind, given);
    return given.bound;
  }

  /** They are done; what could not be opened is tried anew the next time. */
  settled(): void {
    for (const keeper of this.#keepers.splice(0)) keeper.close();
    for (const [bind, { port, opened }] of this.#given)
      if (opened === undefined || this.#wanted.get(bind) !== port) this.#given.delete(bind);
  }

  async #choose(bind: string, port: number): Promise<number> {
    for (const [other, { opened, port: bindPort }] of this.#given) {
      if (other === bind || port === 0 || opened !== port) continue;
      if (this.#wanted.get(other) === bindPort) throw new Error(`EADDRINUSE: port ${port} is that of ${other}`);
      // Of a Bind that goes: some worker may still have it.
      return port;
    }
    const server = createServer((socket) => socket.destroy());
    server.listen({ host: this.#address, port, reusePort: port === 0 });
    await once(server, "listening");
    const bound = server.address();
    if (bound === null || typeof bound === "string") throw new Error("listener without a port");
    if (port === 0) this.#keepers.push(server);
    else await new Promise((resolve) => void server.close(resolve));
    return bound.port;
  }
}
