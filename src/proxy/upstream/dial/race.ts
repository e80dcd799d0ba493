/**
 * Happy eyeballs (RFC 8305 §5): connects to several addresses of one name. The next attempt starts when the one before
 * has failed or has been silent for 250 ms; the first connection wins and the other attempts are destroyed. `Dial` uses
 * it.
 */
import { connect, type Socket, type SocketConnectOpts } from "node:net";
import { SharedReadBuffer } from "./shared-read-buffer.ts";

/** Receives the outcome once, unless the race is cancelled. */
export interface RaceOwner {
  /** @param socket connected, and without listeners */
  won(socket: Socket): void;
  lost(error: Error): void;
}

/** Connection Attempt Delay of RFC 8305 §5. */
const HEAD_START_MS = 250;
/** Only that many addresses of a name are tried. */
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

  /** @param lends true when the socket reads into the shared buffer (shared-read-buffer.ts) */
  constructor(places: readonly SocketConnectOpts[], lends: boolean, owner: RaceOwner) {
    this.#places = places.slice(0, MAX_TRIES);
    this.#lends = lends;
    this.#owner = owner;
  }

  /** Starts the first attempt. The owner is never called before this returns. */
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
    // Report the first failure: later attempts often fail for a family that does not work at all.
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
