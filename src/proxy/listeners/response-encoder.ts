/**
 * The interface through which ReplyWriter sends one response; HTTP/1.1 and HTTP/2 implement it. The order of calls is
 * `head`, any number of `write`, at most one `trailers`, then `end`; or `join`; or `cut` at any time.
 */
import type { Tunnel } from "../exchange/exchange.ts";
import type { TunnelRelay } from "./tunnel-relay.ts";

export interface ResponseEncoder {
  /**
   * @param headers alternating names and values
   * @param close whether the connection ends after this response
   * @param last true when only `end` without a body follows
   */
  head(status: number, headers: string[], close: boolean, last: boolean): void;
  /** Ends the response. @param body the whole body, when nothing was written before */
  end(body?: Buffer): void;
  /** See BodySink: the encoder returns written chunks to the block pool. */
  readonly givesBlocks?: boolean;
  /** Sends the head before there is something of the body. Absent where `head` sends it at once. */
  flush?(): void;
  /** @returns false when the next chunk should wait for `onDrain` */
  write(chunk: Buffer): boolean;
  /** @param raw alternating names and values; called after `head` and before `end` */
  trailers(raw: readonly string[]): void;
  /** Sends the head that opens the tunnel, then relays its bytes. Present only when the request asked for a tunnel. */
  join?(headers: readonly string[], tunnel: Tunnel, onOver: (relay: TunnelRelay) => void): void;
  /** Ends the response so that the client recognises it as truncated. @param resetCode of HTTP/2, CANCEL by default */
  cut(resetCode?: number): void;
  /** Called once after `write` returned false, when it accepts chunks again. */
  onDrain: (() => void) | undefined;
  /** Called once, when the last byte of the response has been handed to the system. */
  onFinish: (() => void) | undefined;
  readonly headSent: boolean;
  /** True after `end`. */
  readonly ended: boolean;
  /** True when the connection or stream is destroyed. */
  readonly gone: boolean;
}
