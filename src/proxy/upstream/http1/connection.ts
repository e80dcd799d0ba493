/** One connection to an upstream: a socket, the parser of what it says, and the call that it serves at the moment. */
import type { Socket } from "node:net";
import { messageOf } from "../../../lib/errors.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../errors.ts";
import type { Http1Call } from "./call.ts";
import { ResponseParser, type Expected, type ResponseEvents } from "./response.ts";
import { shareReadBuffer, type BorrowedReader } from "./shared-read-buffer.ts";

/** The pool's side of a connection. */
export interface ConnectionOwner {
  /** The connection is free again. */
  release(connection: Http1Connection): void;
  /** The connection is gone. */
  forget(connection: Http1Connection): void;
}

export class Http1Connection implements ResponseEvents, BorrowedReader {
  readonly socket: Socket;
  /** Where it leads; "" for a Unix socket. */
  readonly address: string;
  idleSinceMs = 0;
  /** It ends with the call that it serves. */
  retired = false;
  readonly #owner: ConnectionOwner;
  readonly #parser: ResponseParser;
  #call: Http1Call | undefined;
  #served = 0;
  #gone = false;
  #error: Error | undefined;

  /** @param socket that can be used at once, and whose events nobody hears */
  constructor(owner: ConnectionOwner, socket: Socket) {
    this.#owner = owner;
    this.socket = socket;
    this.address = socket.remoteAddress ?? "";
    this.#parser = new ResponseParser(this);
    if (!shareReadBuffer(socket, this)) socket.on("data", (chunk: Buffer) => this.#onBytes(chunk, false));
    socket.on("drain", () => this.#call?.onDrain());
    socket.on("end", () => this.#onEof());
    socket.on("error", (error) => {
      this.#error = error;
    });
    socket.on("close", () => this.#onEof());
    // What asked for a tunnel has stopped it.
    socket.resume();
  }

  get gone(): boolean {
    return this.#gone;
  }

  /** Seconds after which the upstream said it would close when idle. */
  get keepAliveSeconds(): number | undefined {
    return this.#parser.keepAliveSeconds;
  }

  begin(call: Http1Call, expected: Expected): void {
    this.#call = call;
    this.#parser.start(expected);
  }

  /** The call was given up: what is still under way on this connection cannot be told apart from a next answer. */
  discard(): void {
    this.#call = undefined;
    this.#drop();
  }

  onLent(bytes: Buffer): void {
    this.#onBytes(bytes, true);
  }

  onHead(status: number, headers: HeaderList, bodyFollows: boolean): void {
    this.#call?.onHead(status, headers, bodyFollows);
  }

  onData(chunk: Buffer): void {
    this.#call?.onData(chunk);
  }

  room(bytes: number): Buffer {
    return this.#call?.room(bytes) ?? Buffer.allocUnsafe(bytes);
  }

  /** From here on the socket is the call's alone. */
  onSwitch(protocol: string, headers: HeaderList, rest: Buffer): void {
    const call = this.#call;
    this.#call = undefined;
    this.#gone = true;
    this.#owner.forget(this);
    this.socket.pause();
    shareReadBuffer(this.socket, undefined);
    if (rest.length > 0) this.socket.unshift(rest);
    if (call === undefined) this.socket.destroy();
    else call.onSwitch(protocol, headers, this.socket);
  }

  onEnd(trailers: readonly string[], reusable: boolean): void {
    const call = this.#call;
    this.#call = undefined;
    this.#served++;
    const sent = call?.onEnd(trailers) ?? false;
    if (!reusable || !sent || this.#gone) this.#drop();
    else {
      this.socket.resume();
      this.#owner.release(this);
    }
  }

  #onBytes(chunk: Buffer, lent: boolean): void {
    if (this.#gone) return;
    if (this.#call === undefined) {
      this.#drop();
      return;
    }
    try {
      this.#parser.feed(chunk, lent);
    } catch (error) {
      const known = error instanceof ProxyError ? error : new ProxyError("internal", { cause: error });
      this.#break(known);
    }
  }

  #onEof(): void {
    if (this.#gone) return;
    if (this.#call === undefined) {
      this.#drop();
      return;
    }
    const detail = this.#error === undefined ? "closed by the upstream" : messageOf(this.#error);
    if (this.#error === undefined && this.#parser.begun && this.#parser.eof()) return;
    const untouched = this.#served > 0 && !this.#parser.begun;
    this.#break(new ProxyError("upstream_broken", { detail, cause: this.#error }), untouched);
  }

  #break(error: ProxyError, untouched = false): void {
    const call = this.#call;
    this.#call = undefined;
    this.#drop();
    call?.onBroken(error, untouched);
  }

  #drop(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#owner.forget(this);
    this.socket.destroy();
  }
}
