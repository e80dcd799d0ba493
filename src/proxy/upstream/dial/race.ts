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
const ATTEMPT_DELAY_MS = 250;
/** Only that many addresses of a name are tried. */
const MAX_ATTEMPTS = 16;

export class Race {
  readonly #addresses: readonly SocketConnectOpts[];
  readonly #owner: RaceOwner;
  readonly #sharesBuffer: boolean;
  readonly #attempts = new Set<ConnectionAttempt>();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;
  #over = false;
  #error: Error | undefined;

  /** @param sharesBuffer true when the socket reads into the shared buffer (shared-read-buffer.ts) */
  constructor(addresses: readonly SocketConnectOpts[], sharesBuffer: boolean, owner: RaceOwner) {
    this.#addresses = addresses.slice(0, MAX_ATTEMPTS);
    this.#sharesBuffer = sharesBuffer;
    this.#owner = owner;
  }

  /** Starts the first attempt. The owner is never called before this returns. */
  start(): void {
    this.#startNext();
  }

  cancel(): void {
    this.#end(undefined);
  }

  connected(one: ConnectionAttempt): void {
    this.#end(one);
    this.#owner.won(one.socket);
  }

  failed(one: ConnectionAttempt, error: Error): void {
    this.#attempts.delete(one);
    // Report the first failure: later attempts often fail for a family that does not work at all.
    this.#error ??= error;
    if (this.#next < this.#addresses.length) this.#startNext();
    else if (this.#attempts.size === 0 && !this.#over) {
      this.#end(undefined);
      this.#owner.lost(this.#error);
    }
  }

  #startNext(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const address = this.#addresses[this.#next++];
    if (address === undefined) return;
    this.#attempts.add(new ConnectionAttempt(this, address, this.#sharesBuffer));
    if (this.#next < this.#addresses.length) this.#timer = setTimeout(this.#startNext.bind(this), ATTEMPT_DELAY_MS);
  }

  #end(winner: ConnectionAttempt | undefined): void {
    this.#over = true;
    clearTimeout(this.#timer);
    for (const one of this.#attempts) if (one !== winner) one.cancel();
    this.#attempts.clear();
  }
}

class ConnectionAttempt {
  readonly socket: Socket;
  readonly #race: Race;
  readonly #onConnect: () => void = this.#connected.bind(this);
  readonly #onError: (error: Error) => void = this.#failed.bind(this);

  constructor(race: Race, address: SocketConnectOpts, sharesBuffer: boolean) {
    this.#race = race;
    if (sharesBuffer) {
      const sharedBuffer = new SharedReadBuffer();
      this.socket = connect({ ...address, onread: sharedBuffer });
      sharedBuffer.belongTo(this.socket);
    } else this.socket = connect(address);
    this.socket.on("connect", this.#onConnect);
    this.socket.on("error", this.#onError);
  }

  cancel(): void {
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
