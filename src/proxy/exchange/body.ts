/**
 * A body on its way through the proxy, pushed chunk by chunk. Listeners, upstream clients and every policy that reads a
 * body use this interface. It is lighter than a Node stream: three callbacks, one writer, one reader, backpressure by a
 * boolean. Either side may end it early with `destroy`.
 *
 *   source ── data(chunk) ──▶ sink        data() returns false: the source pauses
 *   source ◀── resume() ───── sink        the sink has room again
 *   source ── end | error ──▶ sink        no call follows, nor after destroy()
 */
export interface BodyStream {
  /** Starts the flow; called once. */
  read(sink: BodySink): void;
  /** Asks for more after `data` has returned false. */
  resume(): void;
  /** Stops the flow; the sink receives no further call. */
  destroy(error?: Error): void;
  /** Returns the whole body if all of it has already arrived; the caller then does not call `read`. */
  whole?(): Buffer | undefined;
  /** True when all of the body has arrived; unset when the source cannot tell. */
  readonly isComplete?: boolean | undefined;
  /**
   * True when the sink alone has the chunks and may free their memory (lib/free-buffer.ts). A stream that keeps chunks,
   * or passes on those of another stream that does, must leave this unset.
   */
  readonly givesChunks?: boolean;
}

export interface BodySink {
  /**
   * True when the sink returns each chunk as a block (lib/blocks.ts) once its bytes are sent. Requires that the sink
   * alone sees the chunks: a sink that inspects or keeps them, or passes them on, must leave this unset.
   */
  readonly givesBlocks?: boolean;
  /** @returns false to pause the writer until `resume`. */
  data(chunk: Buffer): boolean;
  /** @param trailers alternating names and values */
  end(trailers: readonly string[]): void;
  /** The body broke off; a message that was partly sent cannot be completed. */
  error(error: Error): void;
}

/** Default for the bytes of one body that may be held in memory (2 MiB). */
export const BODY_LIMIT_BYTES = 2_097_152;

/** An empty body, a body that is held in memory, or a stream. */
export type Body = null | Buffer | BodyStream;
