/**
 * One HTTP/1.1 request to an upstream (RFC 9112): writes the head, streams the body, hands the response over as it
 * arrives, and ends both directions together when any side gives up. `Http1Pool` creates one for each request. The call
 * is the sink of the request body and the stream of the response body at once, so that a request costs one object.
 *
 *     start ──▶ waiting for a connection ──▶ attach: head and body are sent ──▶ onHead ──▶ onData… ──▶ onEnd
 *                         ▲                           │
 *                         └── onBroken, at most once ─┘  if the reused connection sent no byte of a response
 *
 * `fail`, `abort` and `destroy` end the call from every state. `#over` lets only the first of them take effect, so that
 * the promise settles once and the connection goes back to the pool at most once.
 */
import type { Socket } from "node:net";
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import { BLOCK_BYTES, takeBlock } from "../../../lib/blocks.ts";
import type { HeaderList } from "../../../lib/header-list.ts";
import type { Abortable } from "../../exchange/exchange.ts";
import { startDeadline } from "../deadline.ts";
import type { Http1Connection } from "./connection.ts";
import { encodeHead } from "./request.ts";
import { IDEMPOTENT } from "../idempotent.ts";
import type { Settle, WaitingPlace } from "../pool.ts";
import type { UpstreamRequest } from "../upstream.ts";

/** Supplies connections to calls; the pool implements it. */
export interface Dialer {
  /**
   * Attaches an idle connection at once, or opens one.
   * @param fresh requires a connection that no request has used
   * @returns the place to leave when the call ends before it has a connection
   */
  connect(call: Http1Call, fresh: boolean): WaitingPlace | undefined;
}

/** The body that arrived while no connection was attached: a paused stream still delivers the bytes it has read. */
interface EarlyBody {
  readonly chunks: Buffer[];
  /** Set once the body has ended. */
  trailers?: readonly string[];
}

const QUEUE_BYTES = 65_536;
const ONE_WRITE_BYTES = 65_536;
/** Node cuts smaller buffers from its own pool, so blocks pay only from this size. */
const BLOCK_FROM_BYTES = 8_192;

export class Http1Call implements BodyStream, BodySink, Abortable {
  /** Its buffered body is dropped once the response has begun, because a response may stream for minutes. */
  request: UpstreamRequest;
  readonly #dialer: Dialer;
  readonly #settle: Settle;
  #connection: Http1Connection | undefined;
  #waiting: WaitingPlace | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retried = false;
  /** State of a streamed request body: not started, flowing, or complete. */
  #sending: "none" | "flowing" | "complete" = "none";
  #chunked = false;
  #bodyLeft = 0;
  /** True once a byte of a streamed body, or its end, was written to a socket: it can then not be sent again. */
  #bodySent = false;
  /** Body data that arrived while another connection was being opened. */
  #early: EarlyBody | undefined;
  #headed = false;
  #over = false;
  #sink: BodySink | undefined;
  #queue: Buffer[] = [];
  #queued = 0;
  #complete = false;
  #trailers: readonly string[] = [];
  #failure: Error | undefined;

  constructor(dialer: Dialer, request: UpstreamRequest, settle: Settle) {
    this.#dialer = dialer;
    this.request = request;
    this.#settle = settle;
  }

  start(): void {
    this.#timer = startDeadline(this.request, this);
    this.request.abort?.onAbort(this);
    if (!this.#over) this.#waiting = this.#dialer.connect(this, false);
  }

  get over(): boolean {
    return this.#over;
  }

  /**
   * Sends the request on `connection`, which belongs to this call until the response is complete.
   * @returns false when the call is over
   */
  attach(connection: Http1Connection): boolean {
    if (this.#over) return false;
    this.#waiting = undefined;
    this.#connection = connection;
    try {
      this.#send(connection);
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
    return true;
  }

  #send(connection: Http1Connection): void {
    const { body, method, upgrade, headers } = this.request;
    const { text, framing } = encodeHead(this.request);
    const keepsCase = headers.spelling !== undefined;
    connection.begin(this, { headOnly: method === "HEAD", mayUpgrade: upgrade !== undefined, keepsCase });
    if (body === null) connection.socket.write(text, "latin1");
    else if (Buffer.isBuffer(body)) {
      if (body.length < ONE_WRITE_BYTES) {
        const all = Buffer.allocUnsafe(text.length + body.length);
        all.write(text, 0, "latin1");
        body.copy(all, text.length);
        connection.socket.write(all);
      } else {
        const { socket } = connection;
        // One system call for both: a head of its own would wake the server, which could do nothing with it yet.
        socket.cork();
        socket.write(text, "latin1");
        socket.write(body);
        socket.uncork();
      }
      this.#sending = "complete";
    } else {
      connection.socket.write(text, "latin1");
      if (this.#sending === "flowing") this.#catchUp(body);
      else {
        this.#chunked = framing < 0;
        this.#bodyLeft = framing;
        this.#sending = "flowing";
        body.read(this);
      }
    }
  }

  /** Resumes a streamed body on the second connection. The body has started, but no byte of it was written before. */
  #catchUp(body: BodyStream): void {
    const { chunks = [], trailers } = this.#early ?? {};
    this.#early = undefined;
    let more = true;
    for (const chunk of chunks) more = this.data(chunk);
    if (trailers !== undefined) this.end(trailers);
    else if (more) body.resume();
  }

  // BodySink: the request body arrives.

  data(chunk: Buffer): boolean {
    if (this.#over || chunk.length === 0) return true;
    const socket = this.#connection?.socket;
    if (socket === undefined) {
      (this.#early ??= { chunks: [] }).chunks.push(chunk);
      return false;
    }
    this.#bodySent = true;
    if (!this.#chunked) {
      this.#bodyLeft -= chunk.length;
      if (this.#bodyLeft < 0) {
        this.fail(new ProxyError("request_invalid", { detail: "body longer than content-length" }));
        return true;
      }
      return socket.write(chunk);
    }
    // Cork until the end of the turn, so that a packet of many tiny chunks causes one write and not one for each chunk.
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(uncork, socket);
    }
    socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
    socket.write(chunk);
    return socket.write("\r\n", "latin1");
  }

  end(trailers: readonly string[]): void {
    if (this.#over) return;
    if (this.#connection === undefined) {
      (this.#early ??= { chunks: [] }).trailers = trailers;
      return;
    }
    this.#bodySent = true;
    if (!this.#chunked && this.#bodyLeft !== 0) {
      this.fail(new ProxyError("request_invalid", { detail: "body shorter than content-length" }));
      return;
    }
    if (this.#chunked) {
      let text = "0\r\n";
      for (let at = 0; at < trailers.length; at += 2) text += `${trailers[at]}: ${trailers[at + 1]}\r\n`;
      this.#connection.socket.write(`${text}\r\n`, "latin1");
    }
    this.#sending = "complete";
  }

  error(error: Error): void {
    this.fail(error);
  }

  /** Resumes the request body when the socket accepts more data. */
  onDrain(): void {
    const { body } = this.request;
    if (this.#sending === "flowing" && body !== null && !Buffer.isBuffer(body)) body.resume();
  }

  // Called by the connection: the response arrives.

  onHead(status: number, headers: HeaderList, bodyFollows: boolean): void {
    this.#headed = true;
    if (Buffer.isBuffer(this.request.body)) this.request = { ...this.request, body: null };
    this.#settle.resolve({ status, headers, body: bodyFollows ? this : null });
  }

  /** @param socket paused and without listeners; it leaves the pool and becomes the tunnel */
  onSwitch(protocol: string, headers: HeaderList, socket: Socket): void {
    this.#connection = undefined;
    const asked = (this.request.upgrade ?? "").toLowerCase().split(",");
    if (this.#over || !asked.some((each) => each.trim() === protocol.toLowerCase())) {
      socket.destroy();
      this.fail(new ProxyError("upgrade_failed", { detail: `asked for ${asked.join()}, got ${protocol}` }));
      return;
    }
    this.#over = true;
    clearTimeout(this.#timer);
    const tunnel = { protocol, stream: socket };
    this.#settle.resolve({ status: 101, headers, body: null, tunnel });
  }

  onData(chunk: Buffer): void {
    if (this.#over) return;
    if (this.#sink !== undefined) {
      if (!this.#sink.data(chunk)) this.#connection?.socket.pause();
      return;
    }
    this.#queue.push(chunk);
    this.#queued += chunk.length;
    if (this.#queued >= QUEUE_BYTES) this.#connection?.socket.pause();
  }

  room(bytes: number): Buffer {
    const inBlock = bytes >= BLOCK_FROM_BYTES && bytes <= BLOCK_BYTES && this.#sink?.givesBlocks === true;
    return inBlock ? takeBlock(bytes) : Buffer.allocUnsafe(bytes);
  }

  /** @returns true when the request was sent in full as well, so that the connection can serve another one */
  onEnd(trailers: readonly string[]): boolean {
    const sent = this.request.body === null || this.#sending === "complete";
    if (!sent) this.#stopSending();
    this.#connection = undefined;
    this.#complete = true;
    this.#trailers = trailers;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#sink?.end(trailers);
    return sent;
  }

  /** Handles a broken connection. @param untouched it has served a request before and sent no byte of this response */
  onBroken(error: ProxyError, untouched: boolean): void {
    if (this.#over) return;
    if (untouched && !this.#retried && this.#mayRepeat()) {
      this.#retried = true;
      this.#connection = undefined;
      this.#waiting = this.#dialer.connect(this, true);
      return;
    }
    this.fail(error);
  }

  /**
   * Decides whether a request may be sent a second time: an upstream may close an idle connection at the moment when it
   * is reused (RFC 9110 §9.2.2). A request without a streamed body may have reached the upstream in full, so its method
   * has to be idempotent. A request whose streamed body has not begun was incomplete, whatever its method.
   */
  #mayRepeat(): boolean {
    const { body, method } = this.request;
    return body === null || Buffer.isBuffer(body) ? IDEMPOTENT.has(method) : !this.#bodySent;
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#waiting?.leave(this);
    this.#connection?.discard();
    this.#connection = undefined;
    this.#early = undefined;
    this.#stopSending();
    this.#queue = [];
    if (!this.#headed) this.#settle.reject(error);
    else if (this.#sink !== undefined) this.#sink.error(error);
    else this.#failure = error;
  }

  #stopSending(): void {
    const { body } = this.request;
    if (body !== null && !Buffer.isBuffer(body) && this.#sending !== "complete") body.destroy();
  }

  abort(error: Error): void {
    this.fail(error);
  }

  // BodyStream: the response is read.

  whole(): Buffer | undefined {
    if (!this.#complete || this.#trailers.length > 0) return undefined;
    const queue = this.#queue;
    return queue.length === 1 ? queue[0] : Buffer.concat(queue);
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    const queue = this.#queue;
    this.#queue = [];
    let more = true;
    for (const chunk of queue) more = sink.data(chunk);
    if (this.#failure !== undefined) sink.error(this.#failure);
    else if (this.#complete) sink.end(this.#trailers);
    else if (more) this.#connection?.socket.resume();
    else this.#connection?.socket.pause();
  }

  resume(): void {
    this.#connection?.socket.resume();
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#waiting?.leave(this);
    this.#connection?.discard();
    this.#connection = undefined;
    this.#stopSending();
    this.#queue = [];
  }
}

function uncork(socket: Socket): void {
  socket.uncork();
}
