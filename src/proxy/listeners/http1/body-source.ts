/** The HTTP/1.1 side of a request body; the HTTP/1 server makes one for each request. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { BodySource } from "../incoming-body.ts";

export class Http1BodySource implements BodySource {
  readonly stream: IncomingMessage;
  readonly keepsCase: boolean;
  /** The parser of Node reads into memory that it uses again, so it hands out copies. */
  readonly copiesChunks = true;
  /** Present while the client waits for "100 Continue". */
  #waiting: ServerResponse | undefined;

  constructor(request: IncomingMessage, keepsCase: boolean, waiting: ServerResponse | undefined) {
    this.stream = request;
    this.keepsCase = keepsCase;
    this.#waiting = waiting;
  }

  get isComplete(): boolean {
    return this.stream.complete;
  }

  get trailers(): readonly string[] {
    return this.stream.rawTrailers;
  }

  wanted(): void {
    this.#waiting?.writeContinue();
    this.#waiting = undefined;
  }
}
