/**
 * One HTTP/2 request to an upstream (RFC 9113 §8): the sink of the request body and the stream of the response body at
 * once, so that a request costs one object beside its stream. `Http2Pool` creates one for each request.
 *
 *     start ──▶ waiting for a connection ──▶ attach: a stream is opened ──▶ onResponse ──▶ onData… ──▶ complete
 *                         ▲                           │
 *                         └─── broken, at most once ──┘  if the request may be sent again
 *
 * `fail`, `abort` and `destroy` end the call from every state. `#over` lets only the first of them take effect, so that
 * the promise settles once and the connection counts each call down once.
 */
import { constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { HeaderList } from "../../../lib/header-list.ts";
import { messageOf } from "../../../lib/errors.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";
import type { Abortable } from "../../exchange/exchange.ts";
import { forwardableTrailers } from "../../exchange/fields.ts";
import { startDeadline } from "../deadline.ts";
import type { Http2Connection } from "./connection.ts";
import { encodeFields, responseFields, trailerFields } from "./request.ts";
import { IDEMPOTENT } from "../idempotent.ts";
import type { Settle, WaitingPlace } from "../pool.ts";
import type { UpstreamRequest } from "../upstream.ts";

/** Supplies connections to calls; the pool implements it. */
export interface StreamSource {
  readonly scheme: "http" | "https";
  /**
   * Attaches a usable connection at once, or waits for a new one.
   * @param fresh requires a connection that was not open before
   * @returns the place to leave when the call ends before it has a connection
   */
  connect(call: Http2Call, fresh: boolean): WaitingPlace | undefined;
}

export class Http2Call implements BodyStream, BodySink, Abortable {
  /** Its buffered body is dropped once the response has begun, because a response may stream for minutes. */
  request: UpstreamRequest;
  readonly #source: StreamSource;
  readonly #settle: Settle;
  #connection: Http2Connection | undefined;
  #waiting: WaitingPlace | undefined;
  #stream: ClientHttp2Stream | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retried = false;
  #over = false;
  #headed = false;
  #sending: "none" | "flowing" | "complete" = "none";
  /** Bytes of the body that are still to come; -1 when the length is not declared. */
  #left = -1;
  #requestTrailers: readonly string[] = [];
  #trailers: readonly string[] = [];
  #sink: BodySink | undefined;
  #error: Error | undefined;
  /** The error for a sink that is attached after the call has failed. */
  #failure: Error | undefined;

  constructor(source: StreamSource, request: UpstreamRequest, settle: Settle) {
    this.#source = source;
    this.request = request;
    this.#settle = settle;
  }

  start(): void {
    this.#timer = startDeadline(this.request, this);
    this.request.abort?.onAbort(this);
    if (!this.#over) this.#waiting = this.#source.connect(this, false);
  }

  get over(): boolean {
    return this.#over;
  }

  /** Opens a stream on `connection`, which counts this call until the response is complete. */
  attach(connection: Http2Connection): void {
    if (this.#over) return;
    this.#waiting = undefined;
    this.#connection = connection;
    try {
      this.#send(connection.begin());
    } catch (error) {
      if (error instanceof ProxyError) this.fail(error);
      // The session closed after the pool had chosen it, so the upstream has not processed the request.
      else this.#broken(true, error);
    }
  }

  #send(session: ClientHttp2Session): void {
    const { body } = this.request;
    const { fields, declared } = encodeFields(this.request, this.request.scheme ?? this.#source.scheme);
    const flows = body !== null && !Buffer.isBuffer(body);
    const stream = session.request(fields, { endStream: body === null, waitForTrailers: flows });
    this.#stream = stream;
    stream.on("response", this.#onResponse.bind(this));
    stream.on("trailers", this.#onTrailers.bind(this));
    stream.on("error", this.#onError.bind(this));
    stream.on("close", this.#onClose.bind(this));
    if (!flows) {
      this.#sending = "complete";
      if (body !== null) stream.end(body);
      return;
    }
    this.#sending = "flowing";
    this.#left = declared;
    stream.on("drain", this.#onDrain.bind(this));
    stream.on("wantTrailers", this.#sendTrailers.bind(this));
    body.read(this);
  }

  // BodySink: the request body arrives.

  data(chunk: Buffer): boolean {
    const stream = this.#stream;
    if (stream === undefined || this.#over || chunk.length === 0) return true;
    if (this.#left >= 0) {
      this.#left -= chunk.length;
      if (this.#left < 0) {
        this.fail(new ProxyError("request_invalid", { detail: "body longer than content-length" }));
        return true;
      }
    }
    return stream.write(chunk);
  }

  end(trailers: readonly string[]): void {
    if (this.#over) return;
    if (this.#left > 0) {
      this.fail(new ProxyError("request_invalid", { detail: "body shorter than content-length" }));
      return;
    }
    this.#requestTrailers = trailers;
    this.#sending = "complete";
    this.#stream?.end();
  }

  error(error: Error): void {
    this.fail(error);
  }

  #sendTrailers(): void {
    // A reset also emits "wantTrailers", when the stream can no longer carry any.
    if (this.#stream?.closed === false) this.#stream.sendTrailers(trailerFields(this.#requestTrailers));
  }

  #onDrain(): void {
    const { body } = this.request;
    if (this.#sending === "flowing" && body !== null && !Buffer.isBuffer(body)) body.resume();
  }

  // Events of the stream: the response arrives.

  #onResponse(headers: { readonly ":status"?: number }, flags: number, raw: readonly string[] = []): void {
    if (this.#over) return;
    this.#headed = true;
    if (Buffer.isBuffer(this.request.body)) this.request = { ...this.request, body: null };
    const status = headers[":status"] ?? 0;
    const bodyless = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    this.#settle.resolve({ status, headers: new HeaderList(responseFields(raw)), body: bodyless ? null : this });
    if (bodyless) {
      this.#complete();
      // There is no body to read, but node ends a stream only when it is read.
      this.#stream?.resume();
    }
  }

  #onTrailers(_headers: unknown, _flags: number, raw: readonly string[] = []): void {
    this.#trailers = forwardableTrailers(raw);
  }

  #onData(chunk: Buffer): void {
    if (this.#sink?.data(chunk) === false) this.#stream?.pause();
  }

  #onEnd(): void {
    // A broken connection ends its streams as well, with an error code in rstCode.
    if (this.#over || (this.#stream?.rstCode ?? 0) !== constants.NGHTTP2_NO_ERROR) return;
    const sink = this.#sink;
    this.#complete();
    sink?.end(this.#trailers);
  }

  #onError(error: Error): void {
    this.#error ??= error;
  }

  #onClose(): void {
    if (this.#over) return;
    const code = this.#stream?.rstCode ?? 0;
    const { error } = this.#connection ?? {};
    this.#broken(code === constants.NGHTTP2_REFUSED_STREAM, this.#error ?? error, code);
  }

  /**
   * Ends the call with a complete response. A request body that is still being sent is stopped, for it has no use now.
   */
  #complete(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    const sent = this.#sending === "complete";
    this.#leave(true);
    if (sent) return;
    this.#stopSending();
    this.#stream?.close(constants.NGHTTP2_NO_ERROR);
  }

  /** @param unprocessed true when the upstream has certainly not processed the request */
  #broken(unprocessed: boolean, cause: unknown, code: number = constants.NGHTTP2_NO_ERROR): void {
    if (!this.#headed && !this.#retried && this.#mayRepeat(unprocessed)) {
      this.#retried = true;
      this.#leave(false);
      this.#stream = undefined;
      this.#error = undefined;
      this.#waiting = this.#source.connect(this, true);
      return;
    }
    const detail = cause === undefined ? `the upstream reset the stream with code ${code}` : messageOf(cause);
    this.fail(new ProxyError("upstream_broken", { detail, cause, ...(code === 0 ? {} : { resetCode: code }) }));
  }

  /**
   * Decides whether the request may be sent once more. A refused stream was not processed (RFC 9113 §8.7), so any
   * method may be repeated; on a connection that was just closing it may have been, so the method has to be idempotent.
   * A streamed body is never repeated, because its bytes may have left.
   */
  #mayRepeat(unprocessed: boolean): boolean {
    const { body, method } = this.request;
    if (body !== null && !Buffer.isBuffer(body)) return false;
    return unprocessed || (this.#connection?.proven === true && IDEMPOTENT.has(method));
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#end();
    if (!this.#headed) this.#settle.reject(error);
    else if (this.#sink !== undefined) this.#sink.error(error);
    else this.#failure = error;
  }

  abort(error: Error): void {
    this.fail(error);
  }

  #end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#stopSending();
    this.#waiting?.leave(this);
    this.#leave(this.#headed);
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  #leave(answered: boolean): void {
    this.#connection?.done(answered);
    this.#connection = undefined;
  }

  #stopSending(): void {
    const { body } = this.request;
    if (body !== null && !Buffer.isBuffer(body) && this.#sending !== "complete") body.destroy();
  }

  // BodyStream: the response is read.

  read(sink: BodySink): void {
    this.#sink = sink;
    if (this.#failure !== undefined) {
      sink.error(this.#failure);
      return;
    }
    const stream = this.#stream;
    if (stream === undefined || this.#over) return;
    stream.on("end", this.#onEnd.bind(this));
    stream.on("data", this.#onData.bind(this));
  }

  resume(): void {
    this.#stream?.resume();
  }

  destroy(): void {
    this.#sink = undefined;
    if (!this.#over) this.#end();
  }
}
