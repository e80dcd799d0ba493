/**
 * One HTTP/2 connection to an upstream (RFC 9113): a `node:http2` session on a socket that `Dial` has opened, and the
 * number of calls that share it. `Http2Pool` owns it. After GOAWAY (§6.8) it takes no new calls and closes when the
 * last one ends.
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
  /** Called when the connection takes no more calls. */
  retire(connection: Http2Connection): void;
  /** Called when the connection is closed. */
  forget(connection: Http2Connection): void;
}

/** Assumed limit of concurrent streams until the upstream's SETTINGS arrive. */
const ASSUMED_STREAMS = 100;
const STREAM_WINDOW_BYTES = 262_144;
const CONNECTION_WINDOW_BYTES = 16_777_216;
const MAX_HEADER_LIST_BYTES = 65_536;
const MAX_HEADER_PAIRS = 200;
/** In MiB; far above the amount that our flow control windows let an upstream send. */
const SESSION_MEMORY = 64;

/**
 * node:http2 accepts this option for clients as well, but its types omit it. Both ends judge repeated fields
 * themselves.
 */
type SessionOptions = (ClientSessionOptions | SecureClientSessionOptions) & {
  readonly strictSingleValueFields: boolean;
};

export class Http2Connection {
  /** Number of calls in progress. */
  active = 0;
  idleSinceMs = 0;
  /** Remote address; "" for a Unix socket. */
  readonly address: string;
  readonly #owner: SessionOwner;
  readonly #socket: Socket;
  readonly #session: ClientHttp2Session;
  #limit = ASSUMED_STREAMS;
  #served = 0;
  #retired = false;
  #gone = false;
  #error: Error | undefined;

  /** @param socket connected, and without listeners */
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

  /** True once a call was answered: a failure may then mean only that the upstream closed an idle connection. */
  get proven(): boolean {
    return this.#served > 0;
  }

  /** The error that broke the connection, if any. */
  get error(): Error | undefined {
    return this.#error;
  }

  begin(): ClientHttp2Session {
    this.active++;
    return this.#session;
  }

  /** Ends a call. @param answered true when the upstream sent a response */
  done(answered: boolean): void {
    this.active--;
    if (answered) this.#served++;
    this.idleSinceMs = performance.now();
    if (this.active === 0 && this.#retired) this.#session.close();
  }

  /** Closes the connection when its last call is over. */
  close(): void {
    this.#retire();
    if (this.active === 0) this.#session.close();
  }

  /** Destroys the connection and all its calls. */
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
