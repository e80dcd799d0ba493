/**
 * Waits for the first bytes of a streamed answer before the head of the reply goes out. Until then a provider that
 * answers garbage, or nothing, is a failed attempt: the client gets a status, and a retry may ask another provider.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { BodySink, BodyStream } from "../../exchange/body.ts";

/**
 * @returns a stream of the same bytes
 * @throws the error of the stream; ProxyError llm_response_invalid for an empty one
 */
export async function awaitFirstBytes(source: BodyStream): Promise<BodyStream> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  const stream = new StartedStream(source, () => resolve(undefined), reject);
  source.read(stream);
  await promise;
  return stream;
}

type Ending = { readonly trailers: readonly string[] } | { readonly error: Error };

class StartedStream implements BodyStream, BodySink {
  readonly #source: BodyStream;
  readonly #started: () => void;
  readonly #failed: (error: Error) => void;
  /** What came before the reader. */
  #held: Buffer[] = [];
  #ending: Ending | undefined;
  #sink: BodySink | undefined;

  constructor(source: BodyStream, started: () => void, failed: (error: Error) => void) {
    this.#source = source;
    this.#started = started;
    this.#failed = failed;
  }

  data(chunk: Buffer): boolean {
    if (this.#sink !== undefined) return this.#sink.data(chunk);
    this.#held.push(chunk);
    this.#started();
    return false;
  }

  end(trailers: readonly string[]): void {
    if (this.#sink !== undefined) return this.#sink.end(trailers);
    this.#ending = { trailers };
    if (this.#held.length === 0)
      this.#failed(new ProxyError("llm_response_invalid", { detail: "the stream is empty" }));
  }

  error(error: Error): void {
    if (this.#sink !== undefined) return this.#sink.error(error);
    this.#ending = { error };
    if (this.#held.length === 0) this.#failed(error);
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    const held = this.#held;
    // A chunk is a view of 64 KiB that many requests share, all of which an open stream would keep with it.
    this.#held = [];
    let hasRoom = true;
    for (const chunk of held) hasRoom = sink.data(chunk);
    if (this.#ending === undefined) {
      if (hasRoom) this.#source.resume();
    } else if ("error" in this.#ending) sink.error(this.#ending.error);
    else sink.end(this.#ending.trailers);
  }

  resume(): void {
    this.#source.resume();
  }

  destroy(error?: Error): void {
    this.#source.destroy(error);
  }
}
