/**
 * Connects to the first of several addresses that answers (RFC 8305 5): the next one is tried when the one before has
 * failed or has been silent for a while, and the first connection wins.
 */
import { connect, type Socket, type SocketConnectOpts } from "node:net";
import { SharedReadBuffer } from "../http1/shared-read-buffer.ts";

/** Told once, unless the race is called off. */
export interface RaceOwner {
  /** Nobody listens to the socket. */
  won(socket: Socket): void;
  lost(error: Error): void;
}

const HEAD_START_MS = 250;
/** A name with more addresses than that is tried at these. */
const MAX_TRIES = 16;

export class Race {
  readonly #places: readonly SocketConnectOpts[];
  readonly #owner: RaceOwner;
  readonly #lends: boolean;
  readonly #trying = new Set<Try>();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;
  #over = false;
  #error: Error | undefined;

  /** @param lends whether the socket may have a reader (lent-reads.ts) */
  constructor(places: readonly SocketConnectOpts[], lends: boolean, owner: RaceOwner) {
    this.#places = places.slice(0, MAX_TRIES);
    this.#lends = lends;
    this.#owner = owner;
  }

  /** The owner is never told before this returns. */
  start(): void {
    this.#tryNext();
  }

  cancel(): void {
    this.#end(undefined);
  }

  connected(one: Try): void {
    this.#end(one);
    this.#owner.won(one.socket);
  }

  failed(one: Try, error: Error): void {
    this.#trying.delete(one);
    // The first failure is that of the address which was meant; later ones are often of a family that does not work.
    this.#error ??= error;
    if (this.#next < this.#places.length) this.#tryNext();
    else if (this.#trying.size === 0 && !this.#over) {
      this.#end(undefined);
      this.#owner.lost(this.#error);
    }
  }

  #tryNext(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const place = this.#places[this.#next++];
    if (place === undefined) return;
    this.#trying.add(new Try(this, place, this.#lends));
    if (this.#next < this.#places.length) this.#timer = setTimeout(this.#tryNext.bind(this), HEAD_START_MS);
  }

  #end(winner: Try | undefined): void {
    this.#over = true;
    clearTimeout(this.#timer);
    for (const one of this.#trying) if (one !== winner) one.give();
    this.#trying.clear();
  }
}

class Try {
  readonly socket: Socket;
  readonly #race: Race;
  readonly #onConnect: () => void = this.#connected.bind(this);
  readonly #onError: (error: Error) => void = this.#failed.bind(this);

  constructor(race: Race, place: SocketConnectOpts, lends: boolean) {
    this.#race = race;
    if (lends) {
      const loan = new SharedReadBuffer();
      this.socket = connect({ ...place, onread: loan });
      loan.belongTo(this.socket);
    } else this.socket = connect(place);
    this.socket.on("connect", this.#onConnect);
    this.socket.on("error", this.#onError);
  }

  give(): void {
    this.socket.off("connect", this.#onConnect);
    this.socket.destroy();
  }

  #connected(): void {
    this.socket.off("connect", this.#onConnect);
    this.socket.off("error", this.#onError);
    this.#race.connected(this);
  }

  #failed(error: Error): void {
    if (!this.socket.destroyed) this.socket.destroy();
    this.#race.failed(this, error);
  }
}
