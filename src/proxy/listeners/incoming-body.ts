/** A request body as it comes off a node:http connection, as a BodyStream. Asks the client to go on only when it is read. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodySink, BodyStream } from "../pipeline/body.ts";
import { forwardable } from "../pipeline/fields.ts";

export class IncomingBody implements BodyStream {
  bytes = 0;
  readonly #request: IncomingMessage;
  /** Present while the client waits for "100 Continue". */
  #waiting: ServerResponse | undefined;
  #sink: BodySink | undefined;

  constructor(request: IncomingMessage, waiting: ServerResponse | undefined) {
    this.#request = request;
    this.#waiting = waiting;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    this.#waiting?.writeContinue();
    this.#waiting = undefined;
    const request = this.#request;
    request.on("data", this.#data.bind(this));
    request.on("end", this.#end.bind(this));
    request.on("error", this.#fail.bind(this));
    request.on("close", this.#closed.bind(this));
  }

  resume(): void {
    this.#request.resume();
  }

  destroy(): void {
    this.#sink = undefined;
  }

  #data(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.#sink?.data(chunk) === false) this.#request.pause();
  }

  #closed(): void {
    if (this.#sink !== undefined) this.#fail(new Error("client closed the connection"));
  }

  #end(): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.end(forwardable(this.#request.rawTrailers));
  }

  #fail(error: Error): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.error(error);
  }
}
