/**
 * Allocates the port of each Bind for workers that open it together; WorkerPool has one. With SO_REUSEPORT several
 * sockets share a port, so a port that another process has opened the same way would bind without an error and the two
 * would silently split the connections. The main thread therefore opens each port once without sharing, which fails
 * when the port is taken.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";

interface Allocation {
  /** Port that the Bind declares. */
  readonly port: number;
  /** Resolves with the port that the workers open. */
  readonly bound: Promise<number>;
  opened: number | undefined;
}

export class PortAllocator {
  readonly #address: string;
  readonly #ports: (bindPort: number) => number;
  readonly #allocated = new Map<string, Allocation>();
  #wanted: ReadonlyMap<string, number> = new Map();
  /** Hold ports that the system chose, so that it does not choose them again before the first worker opens them. */
  #placeholders: Server[] = [];

  /** @param ports maps a Bind's port to the one to open; 0 lets the system choose */
  constructor(address: string, ports: (bindPort: number) => number) {
    this.#address = address;
    this.#ports = ports;
  }

  /** Called before the workers apply an update. @param wanted port by Bind after the update */
  expect(wanted: ReadonlyMap<string, number>): void {
    this.#wanted = wanted;
  }

  /** Returns the same port to all workers (singleflight). @throws the listen error (EADDRINUSE, EACCES) */
  portOf(bind: string, port: number): Promise<number> {
    const known = this.#allocated.get(bind);
    if (known?.port === port) return known.bound;
    const allocated: Allocation = { port, bound: this.#choose(bind, this.#ports(port)), opened: undefined };
    allocated.bound.then(
      (opened) => (allocated.opened = opened),
      () => undefined,
    );
    this.#allocated.set(bind, allocated);
    return allocated.bound;
  }

  /**
   * Called when the workers have applied the update; forgets failed ports, so that the next update tries them again.
   */
  settled(): void {
    for (const placeholder of this.#placeholders.splice(0)) placeholder.close();
    for (const [bind, { port, opened }] of this.#allocated)
      if (opened === undefined || this.#wanted.get(bind) !== port) this.#allocated.delete(bind);
  }

  async #choose(bind: string, port: number): Promise<number> {
    for (const [other, { opened, port: bindPort }] of this.#allocated) {
      if (other === bind || port === 0 || opened !== port) continue;
      if (this.#wanted.get(other) === bindPort) throw new Error(`EADDRINUSE: port ${port} is that of ${other}`);
      // The port belongs to a Bind that is being removed, and some worker may still listen on it.
      return port;
    }
    const server = createServer((socket) => socket.destroy());
    server.listen({ host: this.#address, port, reusePort: port === 0 });
    await once(server, "listening");
    const bound = server.address();
    if (bound === null || typeof bound === "string") throw new Error("listener without a port");
    if (port === 0) this.#placeholders.push(server);
    else await new Promise((resolve) => void server.close(resolve));
    return bound.port;
  }
}
