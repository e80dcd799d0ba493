/**
 * One HTTP/2 connection to an upstream (RFC 9113): a session of node:http2 on a socket of ours, and the count of the
 * calls that share it. An upstream that says GOAWAY gets no new ones; those under way end as it lets them.
 */
import {
  connect as openSession,
  type ClientHttp2Session,
  type ClientSessionOptions,
  type SecureClientSessionOptions,
} from "node:http2";
import type { Socket } from "node:net";

/** The pool's side of a connection. */
export interface SessionOwner {
  /** It takes no more calls. */
  retire(connection: Http2Connection): void;
  /** It is gone. */
  forget(connection: Http2Connection): void;
}

/** Until the upstream has said how many it allows. */
const ASSUMED_STREAMS = 100;
const STREAM_WINDOW_BYTES = 262_144;
const CONNECTION_WINDOW_BYTES = 16_777_216;
const MAX_HEADER_LIST_BYTES = 65_536;
const MAX_HEADER_PAIRS = 200;
/** In MiB: far above what our windows let an upstream make us hold. */
const SESSION_MEMORY = 64;

/** node takes it for clients as well; its types forget to say so. A repeated field is the business of both ends. */
type SessionOptions = (ClientSessionOptions | SecureClientSessionOptions) & {
  readonly strictSingleValueFields: boolean;
};

export class Http2Connection {
  /** Calls that use it. */
  active = 0;
  idleSinceMs = 0;
  /** Where it leads; "" for a Unix socket. */
  readonly address: string;
  readonly #owner: SessionOwner;
  readonly #socket: Socket;
  readonly #session: ClientHttp2Session;
  #limit = ASSUMED_STREAMS;
  #served = 0;
  #retired = false;
  #gone = false;
  #error: Error | undefined;

  /** @param socket that can be used at once, and whose events nobody hears */
  constructor(owner: SessionOwner, socket: Socket, scheme: "http" | "https") {
    this.#owner = owner;
    this.#socket = socket;
    this.address = socket.remoteAddress ?? "";
    socket.on("error", this.#keepError.bind(this));
    socket.on("close", this.#onGone.bind(this));
    const options: SessionOptions = {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW_BYTES,
        maxHeaderListSize: MAX_HEADER_LIST_BYTES,
      },
      maxHeaderListPairs: MAX_HEADER_PAIRS,
      maxSessionMemory: SESSION_MEMORY,
      strictSingleValueFields: false,
    };
    const session = openSession(`${scheme}://upstream`, options);
    this.#session = session;
    session.on("error", this.#keepError.bind(this));
    session.on("goaway", this.#retire.bind(this));
    session.on("close", this.#onGone.bind(this));
    session.on("remoteSettings", this.#onSettings.bind(this));
    session.on("connect", this.#widen.bind(this));
  }

  get hasRoom(): boolean {
    return !this.#retired && this.active < this.#limit;
  }

  /** It has answered before: a failure now may be no more than an idle connection that was just closed. */
  get proven(): boolean {
    return this.#served > 0;
  }

  /** What the connection broke with, if it did. */
  get error(): Error | undefined {
    return this.#error;
  }

  begin(): ClientHttp2Session {
    this.active++;
    return this.#session;
  }

  /** A call is over. @param answered the upstream sent an answer */
  done(answered: boolean): void {
    this.active--;
    if (answered) this.#served++;
    this.idleSinceMs = performance.now();
    if (this.active === 0 && this.#retired) this.#session.close();
  }

  /** Ends it when its last call is over. */
  close(): void {
    this.#retire();
    if (this.active === 0) this.#session.close();
  }

  /** Ends it now, and every call on it. */
  discard(): void {
    this.#session.destroy();
    this.#socket.destroy();
    this.#onGone();
  }

  #widen(): void {
    if (!this.#session.destroyed) this.#session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  }

  #onSettings(settings: { maxConcurrentStreams?: number }): void {
    this.#limit = settings.maxConcurrentStreams ?? Infinity;
  }

  #keepError(error: Error): void {
    this.#error ??= error;
  }

  #retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#owner.retire(this);
  }

  #onGone(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#retire();
    this.#owner.forget(this);
  }
}
