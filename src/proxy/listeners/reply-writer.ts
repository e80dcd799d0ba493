/**
 * Writes a Reply to the client through a ResponseEncoder; each ActiveRequest has one. It drops hop-by-hop headers,
 * sets Content-Length, and streams the body with backpressure: `data` returns false when the encoder is full, and
 * `onDrain` resumes the body. A body that breaks off, or that does not match its declared length, cuts the connection
 * or stream: the client must never take a truncated response as complete.
 */
import { ProxyError } from "../exchange/errors.ts";
import type { BodySink, BodyStream } from "../exchange/body.ts";
import type { Reply, Tunnel } from "../exchange/exchange.ts";
import { ROLE, fieldOf, encodeFieldValue } from "../exchange/fields.ts";
import type { HttpExchange } from "../pipeline/http-exchange.ts";
import type { TunnelRelay } from "./tunnel-relay.ts";
import type { ResponseEncoder } from "./response-encoder.ts";

export class ReplyWriter implements BodySink {
  bytes = 0;
  /** True when the response was cut on purpose. */
  broken = false;
  readonly givesBlocks: boolean;
  readonly #encoder: ResponseEncoder;
  readonly #exchange: HttpExchange;
  #body: BodyStream | undefined;
  #declared: number | undefined;

  constructor(encoder: ResponseEncoder, exchange: HttpExchange) {
    this.#encoder = encoder;
    this.#exchange = exchange;
    this.givesBlocks = encoder.givesBlocks === true;
    encoder.onDrain = this.#resume.bind(this);
  }

  /** @param close whether the connection ends after this response @throws when a header cannot be sent over HTTP */
  write(reply: Reply, close: boolean): void {
    const { body, status } = reply;
    const whole = body === null || Buffer.isBuffer(body) ? body : (body.whole?.() ?? body);
    const headOnly = this.#exchange.method === "HEAD" || status === 204 || status === 304;
    const headers = spelled(this.#headers(reply, whole, headOnly), reply);
    const last = whole === null || headOnly;
    this.#encoder.head(status, headers, close, last);
    if (last) {
      if (whole !== null && !Buffer.isBuffer(whole)) whole.destroy();
      this.#encoder.end();
    } else if (Buffer.isBuffer(whole)) {
      this.bytes = whole.length;
      this.#encoder.end(whole);
    } else {
      this.#body = whole;
      whole.read(this);
      // Usually the first piece is here and leaves together with the head. Otherwise the head does not wait for it: a
      // client of an event stream learns that it is connected before something happens.
      if (this.bytes === 0 && this.#body !== undefined && this.#encoder.flush !== undefined)
        setImmediate(this.#flush.bind(this));
    }
  }

  #flush(): void {
    if (this.bytes === 0 && this.#body !== undefined && !this.#encoder.gone) this.#encoder.flush?.();
  }

  /** Writes the head and switches to the tunnel. @throws as `write` */
  join(reply: Reply, tunnel: Tunnel, onOver: (relay: TunnelRelay) => void): void {
    this.#encoder.join?.(spelled(this.#headers(reply, null, true), reply), tunnel, onOver);
  }

  data(chunk: Buffer): boolean {
    if (chunk.length === 0) return true;
    this.bytes += chunk.length;
    if (this.#declared !== undefined && this.bytes > this.#declared) {
      this.#body?.destroy();
      this.cut();
      return true;
    }
    return this.#encoder.write(chunk);
  }

  end(trailers: readonly string[]): void {
    if (this.#encoder.gone) return;
    if (this.#declared !== undefined && this.bytes !== this.#declared) {
      this.cut();
      return;
    }
    if (trailers.length > 0) {
      this.#exchange.replyTrailers = trailers;
      this.#encoder.trailers(trailers);
    }
    this.#body = undefined;
    this.#encoder.end();
  }

  error(error: Error): void {
    this.cut(error instanceof ProxyError ? error.resetCode : undefined);
  }

  /** Ends the response so that the client recognises the truncation (RFC 9112 §8). */
  cut(resetCode?: number): void {
    this.broken = true;
    this.abandon();
    this.#encoder.cut(resetCode);
  }

  #resume(): void {
    this.#body?.resume();
  }

  /** Destroys the body without writing more, for example after the client left. */
  abandon(): void {
    const body = this.#body;
    this.#body = undefined;
    body?.destroy();
  }

  #headers(reply: Reply, body: Buffer | BodyStream | null, headOnly: boolean): string[] {
    const { raw } = reply.headers;
    const out: string[] = [];
    let length: string | undefined;
    let hasId = false;
    // Only a client that uses us as a proxy gets the challenge: any other would send its credential to us.
    const isChallenge = reply.status === 407 && this.#exchange.takenForProxy;
    for (let at = 0; at < raw.length; at += 2) {
      const field = fieldOf(raw[at] as string);
      if (field === undefined) throw new Error(`invalid header name ${JSON.stringify(raw[at])}`);
      const value = raw[at + 1] as string;
      if (field.role === ROLE.contentLength) length = value;
      else if (isEndToEnd(field.role) || (field.role === ROLE.proxyChallenge && isChallenge))
        out.push(field.name, encoded(value));
      hasId ||= field.role === ROLE.requestId;
    }
    this.#addQueued(out, reply);
    if (!hasId) out.push("x-request-id", this.#exchange.requestId);
    if (Buffer.isBuffer(body) && reply.status !== 204 && reply.status !== 304) length = String(body.length);
    else if (body === null && !headOnly) length = "0";
    else if (reply.status === 204) length = undefined;
    if (length !== undefined) {
      out.push("content-length", length);
      if (body !== null && !headOnly) this.#declared = Number(length);
    }
    return out;
  }

  #addQueued(out: string[], reply: Reply): void {
    const raw = this.#exchange.queued?.raw;
    if (raw === undefined) return;
    for (let at = 0; at < raw.length; at += 2) {
      const name = (raw[at] as string).toLowerCase();
      const value = raw[at + 1] as string;
      if (name === "set-cookie" || !reply.headers.has(name)) out.push(name, encoded(value));
    }
  }
}

/** Restores the upstream's spelling of header names where http1PreserveCase is set and both sides speak HTTP/1. */
function spelled(raw: string[], { headers: { spelling } }: Reply): string[] {
  if (spelling !== undefined)
    for (let at = 0; at < raw.length; at += 2) raw[at] = spelling.get(raw[at] as string) ?? (raw[at] as string);
  return raw;
}

function isEndToEnd(role: number): boolean {
  switch (role) {
    case ROLE.hop:
    case ROLE.connection:
    case ROLE.keepAlive:
    case ROLE.transferEncoding:
    case ROLE.upgrade:
    case ROLE.te:
    case ROLE.proxyAuthorization:
    case ROLE.proxyChallenge:
      return false;
    default:
      return true;
  }
}

function encoded(value: string): string {
  const text = encodeFieldValue(value);
  if (text === undefined) throw new Error("control character in a header value");
  return text;
}
