/**
 * Shows one side of an exchange, the request or the response, to an external processor: headers, body by its mode,
 * trailers. The policy `extProc` and the endpoint pickers of InferencePools use it.
 */
import type {
  BodyMutation,
  CommonResponse,
  ImmediateResponse,
} from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { CommonResponse_ResponseStatus as Status } from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { BodyMode } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { CalloutError } from "../../callouts/callout.ts";
import { holdStart, type HeldBody } from "../../exchange/buffering.ts";
import type { Exchange } from "../../exchange/exchange.ts";
import { SplicedBody, TrailedBody } from "./bodies.ts";
import { DuplexBody } from "./duplex-body.ts";
import { bodyPart, headersPart, mutate, type Side } from "./messages.ts";
import type { ProcSession } from "./session.ts";

export class SideProcessor {
  readonly #session: ProcSession;
  readonly #side: Side;
  readonly #exchange: Exchange;
  readonly #failOpen: boolean;

  /** @param failOpen a body that no part of was handed over continues without a processor that fails */
  // oxlint-disable-next-line max-params -- as its only callers have them
  constructor(session: ProcSession, side: Side, exchange: Exchange, failOpen: boolean) {
    this.#session = session;
    this.#side = side;
    this.#exchange = exchange;
    this.#failOpen = failOpen;
  }

  /** @returns an immediate response, if the processor gives one @throws CalloutError */
  async run(): Promise<ImmediateResponse | undefined> {
    const side = this.#side;
    const session = this.#session;
    const duplex = this.#openDuplex();
    if (session.modes[side.kind].headers) {
      const answer = side.kind === "request" ? "requestHeaders" : "responseHeaders";
      const waiting = session.ask(side.kind, headersPart(side), answer, duplex !== undefined);
      // It may reject while `#begin` still waits for the connection; the `await` below handles the rejection.
      waiting.catch(() => undefined);
      if (duplex !== undefined) await this.#begin(duplex);
      const message = await waiting;
      if (message === undefined && duplex !== undefined && session.handed)
        throw new CalloutError("the processor left in the middle of a body");
      const response = message?.response;
      if (response?.case === "immediateResponse") return response.value;
      if (response?.case === answer && this.#applyHeaders(response.value.response)) return undefined;
    } else if (duplex !== undefined) await this.#begin(duplex);
    return duplex === undefined ? this.#showRest() : undefined;
  }

  /**
   * Waits for the connection first, so that no part of a body is handed over in vain and failing open stays possible.
   */
  async #begin(duplex: DuplexBody): Promise<void> {
    await this.#session.connected();
    duplex.start();
    this.#side.body = duplex;
  }

  #openDuplex(): DuplexBody | undefined {
    const { kind, body, target } = this.#side;
    const mode = this.#session.modes[kind];
    if (mode.body !== BodyMode.FULL_DUPLEX_STREAMED || body === null) return undefined;
    target.headers.remove("content-length");
    return new DuplexBody(body, kind, this.#session, this.#failOpen);
  }

  /** @returns true when the processor wants to see nothing more of this side */
  #applyHeaders(common: CommonResponse | undefined): boolean {
    const side = this.#side;
    mutate(common?.headerMutation, side.target);
    if (common?.status !== Status.CONTINUE_AND_REPLACE) return false;
    discardBody(side);
    side.body = replacement(common.bodyMutation, Buffer.alloc(0));
    side.target.headers.remove("content-length");
    return true;
  }

  /** Shows body and trailers by the modes, which the headers answer may have overridden. */
  async #showRest(): Promise<ImmediateResponse | undefined> {
    const side = this.#side;
    const session = this.#session;
    const mode = session.modes[side.kind];
    if (session.over) return undefined;
    if (mode.body === BodyMode.BUFFERED || mode.body === BodyMode.BUFFERED_PARTIAL) {
      const instead = await this.#showBuffered(mode.body === BodyMode.BUFFERED_PARTIAL);
      if (instead !== undefined) return instead;
    } else if (mode.body === BodyMode.FULL_DUPLEX_STREAMED) {
      const duplex = this.#openDuplex();
      if (duplex !== undefined) await this.#begin(duplex);
      return undefined;
    }
    if (mode.trailers && side.body !== null && !Buffer.isBuffer(side.body))
      side.body = new TrailedBody(side.body, side.kind, session, this.#failOpen);
    return undefined;
  }

  async #showBuffered(partial: boolean): Promise<ImmediateResponse | undefined> {
    const side = this.#side;
    const session = this.#session;
    const { requestLimitBytes, responseLimitBytes } = this.#exchange;
    const limitBytes = side.kind === "request" ? requestLimitBytes : responseLimitBytes;
    const held = await hold(side, limitBytes, this.#exchange);
    if (held === undefined) return undefined;
    side.body = held.body;
    if (!held.complete && !partial)
      throw new CalloutError(`a body is longer than the ${limitBytes} bytes that are held`);
    const start = held.complete ? held.start : held.start.subarray(0, limitBytes);
    const answer = side.kind === "request" ? "requestBody" : "responseBody";
    // A complete body that is still a stream has trailers to come.
    const last = held.complete && (Buffer.isBuffer(held.body) || !session.modes[side.kind].trailers);
    await session.connected();
    session.handed ||= !session.over;
    const response = (await session.ask(side.kind, bodyPart(side.kind, start, last), answer))?.response;
    if (response?.case === "immediateResponse") return response.value;
    const common = response?.case === answer ? response.value.response : undefined;
    mutate(common?.headerMutation, side.target);
    const shown = replacement(common?.bodyMutation, start);
    side.target.headers.remove("content-length");
    side.body =
      held.body === null || Buffer.isBuffer(held.body)
        ? shown
        : new SplicedBody(held.body, start.length, shown ?? Buffer.alloc(0));
    return undefined;
  }
}

async function hold({ body }: Side, limitBytes: number, exchange: Exchange): Promise<HeldBody | undefined> {
  if (body === null) return undefined;
  if (Buffer.isBuffer(body)) return { complete: body.length <= limitBytes, start: body, body };
  return holdStart(body, limitBytes, exchange);
}

function discardBody({ body }: Side): void {
  if (body !== null && !Buffer.isBuffer(body)) body.destroy();
}

function replacement(mutation: BodyMutation | undefined, original: Buffer): Buffer | null {
  const change = mutation?.mutation;
  switch (change?.case) {
    case "body":
      return change.value.length === 0 ? null : Buffer.from(change.value);
    case "clearBody":
      return change.value ? null : original;
    case "streamedResponse":
      return Buffer.from(change.value.body);
    case undefined:
      return original.length === 0 ? null : original;
  }
}
