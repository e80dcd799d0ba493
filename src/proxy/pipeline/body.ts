/**
 * A body on its way through, pushed chunk by chunk. Lighter than a Node stream: three callbacks, one writer, one
 * reader, backpressure by a boolean. Either side may end it early with `destroy`.
 */
export interface BodyStream {
  /** Starts the flow; called once. */
  read(sink: BodySink): void;
  /** Asks for more after `data` returned false. */
  resume(): void;
  /** Stops the flow; the sink hears nothing more. */
  destroy(error?: Error): void;
  /** The whole body, when all of it has already arrived; `read` is then not called. */
  whole?(): Buffer | undefined;
  /** Whether all of it has arrived; unset: nobody knows. */
  readonly isComplete?: boolean | undefined;
}

export interface BodySink {
  /**
   * It gives each chunk back as a block (lib/blocks.ts) when its bytes are sent, and nobody else sees it meanwhile: who
   * looks at chunks on their way, or keeps them, is not such a sink.
   */
  readonly givesBlocks?: boolean;
  /** @returns false to pause the writer until `resume`. */
  data(chunk: Buffer): boolean;
  /** @param trailers alternating names and values */
  end(trailers: readonly string[]): void;
  /** The body broke off; what was sent cannot be completed. */
  error(error: Error): void;
}

/** Bytes of a body that are held in memory at most, where nothing else is set (frontend.md 1.3). */
export const BODY_LIMIT_BYTES = 2_097_152;

/** Nothing, all of it, or a flow. */
export type Body = null | Buffer | BodyStream;
