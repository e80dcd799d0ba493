/**
 * One HTTP/1.1 connection to an upstream: the socket, the parser of its responses, and the call that it serves at the
 * moment. `Http1Pool` owns it. A connection without a call is idle; any byte that arrives then closes it, because an
 * unrequested response would otherwise be taken for the answer to the next request.
 */
import type { Socket } from "node:net";
import { messageOf } from "../../../lib/errors.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Http1Call } from "./call.ts";
import type { Expected, ResponseEvents } from "./response-events.ts";
import { ResponseParser } from "./response.ts";
import { shareReadBuffer, type BorrowedReader } from "../dial/shared-read-buffer.ts";

/** The pool's side of a connection. */
export interface ConnectionOwner {
  /** Called when the connection is idle again. */
  release(connection: Http1Connection): void;
  /** Called when the connection is closed or has become a tunnel. */
  forget(connection: Http1Connection): void;
}

export class Http1Connection implements ResponseEvents, BorrowedReader {
  readonly socket: Socket;
  /** Remote address; "" for a Unix socket. */
  readonly address: string;
  idleSinceMs = 0;
  /** True when the connection must close after its current call. */
  retired = false;
  readonly #owner: ConnectionOwner;
  readonly #parser: ResponseParser;
  #call: Http1Call | undefined;
  #served = 0;
  #gone = false;
  #error: Error | undefined;

  /** @param socket connected, and without listeners */
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
    // A CONNECT request leaves the socket paused (dial/connect-request.ts).
    socket.resume();
  }

  get gone(): boolean {
    return this.#gone;
  }

  /** Idle seconds that the upstream announced in `Keep-Alive: timeout=`. */
  get keepAliveSeconds(): number | undefined {
    return this.#parser.keepAliveSeconds;
  }

  begin(call: Http1Call, expected: Expected): void {
    this.#call = call;
    this.#parser.start(expected);
  }

  /** Closes the connection because its call was given up: the rest of that response could be taken for the next one. */
  discard(): void {
    this.#call = undefined;
    this.#drop();
  }

  onBorrowed(bytes: Buffer): void {
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

  /** Hands the socket over to the call after 101; the pool no longer knows it. */
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

  #onBytes(chunk: Buffer, borrowed: boolean): void {
    if (this.#gone) return;
    if (this.#call === undefined) {
      this.#drop();
      return;
    }
    try {
      this.#parser.feed(chunk, borrowed);
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
