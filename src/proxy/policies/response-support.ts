/** The response side of a transformation: what expressions see of it, its status and its body. */
import { HeaderView } from "../../cel/header-view.ts";
import type { Scope } from "../../cel/scope.ts";
import type { Body, BodySink, BodyStream } from "../pipeline/body.ts";
import type { Exchange, Reply } from "../pipeline/exchange.ts";
import type { TransformTarget } from "./transform-support.ts";

export function responseTarget(reply: Reply): TransformTarget {
  return {
    headers: reply.headers,
    setPseudo(name, value) {
      if (name === ":status" && /^[2-5]\d\d$/.test(value)) reply.status = Number(value);
    },
  };
}

export function replaceResponseBody(reply: Reply, body: Buffer): void {
  if (reply.body !== null && !Buffer.isBuffer(reply.body)) reply.body.destroy();
  reply.body = body.length === 0 ? null : body;
  reply.headers.remove("content-length");
}

interface Captured {
  readonly body: Buffer | null;
  readonly prefix: Buffer | null;
}

const NOT_CAPTURED: Captured = { body: null, prefix: null };

/**
 * The exchange's roots plus "response". @param limitBytes undefined: nothing reads the body
 * @returns a scope whose `response.body` is null when the body is larger than the limit
 */
export async function captureResponse(
  exchange: Exchange,
  reply: Reply,
  limitBytes: number | undefined,
): Promise<Scope> {
  const { body, prefix } = limitBytes === undefined ? NOT_CAPTURED : await capture(reply, limitBytes);
  const grpcStatus = reply.headers.get("grpc-status");
  const response = {
    code: reply.status,
    headers: new HeaderView(reply.headers),
    body,
    bodyPrefix: prefix,
    ...(grpcStatus === undefined ? {} : { grpcStatus: Number(grpcStatus) }),
  };
  return { root: (name) => (name === "response" ? response : exchange.root(name)) };
}

async function capture(reply: Reply, limitBytes: number): Promise<Captured> {
  const { body } = reply;
  if (body === null) return { body: Buffer.alloc(0), prefix: Buffer.alloc(0) };
  const whole = Buffer.isBuffer(body) ? body : body.whole?.();
  if (whole !== undefined) {
    const fits = whole.length <= limitBytes;
    return { body: fits ? whole : null, prefix: whole.subarray(0, limitBytes) };
  }
  if (Buffer.isBuffer(body)) return NOT_CAPTURED;
  const start = await readStart(body, limitBytes);
  reply.body = start.rest;
  const prefix = Buffer.concat(start.chunks).subarray(0, limitBytes);
  return { body: start.complete ? prefix : null, prefix };
}

interface Start {
  readonly chunks: readonly Buffer[];
  readonly complete: boolean;
  /** The whole body again: what was read, then what is still to come. */
  readonly rest: Body;
}

/** Reads until the end or until more than the limit is there, and pauses the stream then. */
function readStart(stream: BodyStream, limitBytes: number): Promise<Start> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let forward: BodySink | undefined;
    const replay = new Replay(stream, chunks, (sink) => (forward = sink));
    let decided = false;
    const decide = (complete: boolean): void => {
      decided = true;
      resolve({ chunks, complete, rest: replay });
    };
    stream.read({
      data(chunk) {
        if (forward !== undefined) return forward.data(chunk);
        chunks.push(chunk);
        length += chunk.length;
        if (length > limitBytes && !decided) decide(false);
        return length <= limitBytes;
      },
      end(trailers) {
        if (forward !== undefined) forward.end(trailers);
        else replay.ended = trailers;
        if (!decided) decide(true);
      },
      error(error) {
        if (forward !== undefined) forward.error(error);
        else replay.broken = error;
        if (!decided) reject(error);
      },
    });
  });
}

/** Plays the part that was read once more and then hands the stream through. */
class Replay implements BodyStream {
  readonly #stream: BodyStream;
  readonly #chunks: Buffer[];
  readonly #attach: (sink: BodySink) => void;
  #sink: BodySink | undefined;
  #attached = false;
  ended: readonly string[] | undefined;
  broken: Error | undefined;

  constructor(stream: BodyStream, chunks: Buffer[], attach: (sink: BodySink) => void) {
    this.#stream = stream;
    this.#chunks = chunks;
    this.#attach = attach;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#play();
  }

  resume(): void {
    if (this.#attached) this.#stream.resume();
    else this.#play();
  }

  destroy(error?: Error): void {
    this.#sink = undefined;
    this.#chunks.length = 0;
    this.#stream.destroy(error);
  }

  #play(): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    while (this.#chunks.length > 0) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined && !sink.data(chunk)) return;
      if (this.#sink === undefined) return;
    }
    if (this.broken !== undefined || this.ended !== undefined) this.#sink = undefined;
    if (this.broken !== undefined) sink.error(this.broken);
    else if (this.ended !== undefined) sink.end(this.ended);
    else {
      this.#attached = true;
      this.#attach(sink);
      this.#stream.resume();
    }
  }
}
