/** The answering side of one request, whatever protocol its connection speaks. One head, then a body in pieces or at once. */
import type { Tunnel } from "../pipeline/exchange.ts";
import type { TunnelRelay } from "./tcp/tunnel-relay.ts";

export interface ResponseEncoder {
  /**
   * @param headers alternating names and values
   * @param close the connection ends after this answer
   * @param last nothing follows but `end`
   */
  head(status: number, headers: string[], close: boolean, last: boolean): void;
  /** The end of the answer, with all of its body where nothing was written. */
  end(body?: Buffer): void;
  /** As of BodySink, for what is written. */
  readonly givesBlocks?: boolean;
  /** @returns false when the next piece should wait for `onDrain` */
  write(chunk: Buffer): boolean;
  /** @param raw alternating names and values; before `end`, after `head` */
  trailers(raw: readonly string[]): void;
  /** In place of an answer: the head of one, and then the bytes of the tunnel. Only where the request asked for it. */
  join?(headers: readonly string[], tunnel: Tunnel, onOver: (relay: TunnelRelay) => void): void;
  /** Ends it in a way that a client can tell from a complete answer. @param resetCode for HTTP/2; CANCEL by default */
  cut(resetCode?: number): void;
  /** Called when pieces may be written again, once for each `false`. */
  onDrain: (() => void) | undefined;
  /** Called once, when the last byte of the answer has left. */
  onFinish: (() => void) | undefined;
  readonly headSent: boolean;
  /** `end` was called. */
  readonly ended: boolean;
  /** Nothing more can be written. */
  readonly gone: boolean;
}
