/**
 * Asks the endpoint picker of an InferencePool which endpoint serves a request, and sends the request there. The HTTP
 * handler and the providers of language models use it.
 *
 *   ask: headers, subset hint, body ─▶ picker ─▶ changed headers and body, endpoints in order of preference
 *   forward to the first that can be connected to
 *   report: headers of the response and the endpoint that served ─▶ picker
 *
 * All three are one stream of ext_proc for each request. The picker may name only endpoints of the pool. Where it fails,
 * `failOpen` decides: the endpoint is then chosen by our own balancing, or the request is answered 503. A request of a
 * pool that fails open, or that may be repeated, is held in memory, because a picker that fails in the middle of a body
 * leaves nothing of it; a body beyond the limit streams, and then cannot fail open. The same holds for a request for which
 * the picker names several endpoints.
 */
import type { ImmediateResponse } from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { BodyMode, type InferencePoolBackend } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { BackendMeter, PickerResult } from "../../../telemetry/metrics.ts";
import type { EndpointSet, EndpointState, OfferedEndpoints } from "../../balancing/endpoints.ts";
import { traceSelection } from "../../balancing/trace-selection.ts";
import { CalloutError, type Callout } from "../../callouts/callout.ts";
import type { Body } from "../../exchange/body.ts";
import { holdStart } from "../../exchange/buffering.ts";
import { collect } from "../../exchange/collect.ts";
import { discard } from "../../exchange/discard.ts";
import { ProxyError, type ProxyErrorCode } from "../../exchange/errors.ts";
import type { Reply, RoutedExchange } from "../../exchange/exchange.ts";
import { immediateReply, responseSide, type Side } from "../../policies/ext-proc/messages.ts";
import type { Modes } from "../../policies/ext-proc/modes.ts";
import { ProcSession } from "../../policies/ext-proc/session.ts";
import { SideProcessor } from "../../policies/ext-proc/side-processor.ts";
import { DESTINATION, destinationOf, parseDestinations, servedBy, subsetHint } from "./protocol.ts";

/** Pickers that read trailers do not wait for them, and some never see the end of a body that has any. */
const MODES: Modes = {
  request: { headers: true, body: BodyMode.FULL_DUPLEX_STREAMED, trailers: false },
  response: { headers: true, body: BodyMode.NONE, trailers: false },
};

/** Errors after which nothing of the request has reached an endpoint, so that the next one may be tried. */
const UNSENT: ReadonlySet<ProxyErrorCode> = new Set<ProxyErrorCode>(["upstream_unreachable", "connect_timeout"]);

/** The answer of the picker to one request. */
interface Choice {
  /** undefined when the picker has failed and own balancing chooses. */
  readonly session: ProcSession | undefined;
  /** In order of preference; the first is the next to try. */
  readonly endpoints: EndpointState[];
  /** The picker knows which endpoint has served; of several attempts the first response counts. */
  isReported: boolean;
}

/** The reply of an endpoint, or one that the picker gave in its place. */
export type PickedReply<R extends Reply> =
  | { readonly reply: R; readonly own?: undefined }
  | { readonly reply?: undefined; readonly own: Reply };

/** Sends the request to an endpoint. */
export type Forward<R extends Reply> = (endpoint: EndpointState) => Promise<R>;

export interface PickerDeps {
  readonly service: Callout;
  readonly endpoints: EndpointSet;
  /** Counts the questions; undefined when they are not counted. */
  readonly meter: BackendMeter | undefined;
  readonly nowMs: () => number;
  /** Chooses an endpoint by own balancing. @throws ProxyError endpoint_unavailable */
  readonly balance: (exchange: RoutedExchange) => Promise<EndpointState>;
}

export class EndpointPicker {
  readonly #failOpen: boolean;
  readonly #deps: PickerDeps;
  /** Choices for requests that may be repeated: a later attempt continues the list and asks nothing. */
  readonly #choices = new WeakMap<RoutedExchange, Choice>();

  constructor({ failOpen }: Pick<InferencePoolBackend, "failOpen">, deps: PickerDeps) {
    this.#failOpen = failOpen;
    this.#deps = deps;
  }

  /**
   * @param side the request as it leaves; the changes of the picker are made to it
   * @throws ProxyError picker_failed, endpoint_unavailable, and what `forward` throws
   */
  async call<R extends Reply>(exchange: RoutedExchange, side: Side, forward: Forward<R>): Promise<PickedReply<R>> {
    const isRepeatable = exchange.tried !== undefined;
    let choice = isRepeatable ? this.#choices.get(exchange) : undefined;
    if (choice === undefined) {
      const asked = await this.#ask(exchange, side);
      if ("status" in asked) return { own: asked };
      choice = asked;
      if (isRepeatable) this.#choices.set(exchange, choice);
    }
    const { session, isReported } = choice;
    const { picked, endpoint } = await this.#forward(exchange, choice, forward);
    if (session === undefined || isReported || picked.reply === undefined) return picked;
    choice.isReported = true;
    return report(session, { exchange, reply: picked.reply, endpoint });
  }

  /** @returns the choice, or a response of the picker itself */
  async #ask(exchange: RoutedExchange, side: Side): Promise<Choice | Reply> {
    const { endpoints } = this.#deps;
    if (endpoints.isEmpty) throw new ProxyError("endpoint_unavailable", { detail: "the pool has no endpoints" });
    const offered = endpoints.offer();
    const call = new PickerCall(exchange, this.#deps);
    // The field is the picker's word, so a client must not set it.
    side.target.headers.remove(DESTINATION);
    const held = await this.#hold(exchange, side);
    let session: ProcSession | undefined;
    try {
      let named: string | undefined;
      session = this.#open(exchange, (value) => void (named = value));
      session.accompany("request", { attributes: {}, metadata: subsetHint(offered.names) });
      const immediate = await new SideProcessor(session, side, exchange, false).run();
      if (immediate !== undefined) {
        call.ended("answered");
        return ownReply(immediate);
      }
      const value = side.target.headers.get(DESTINATION) ?? named ?? "";
      side.target.headers.remove(DESTINATION);
      const chosen = findNamed(value, offered);
      if (held !== undefined) side.body = await wholeBody(side.body, exchange.requestLimitBytes);
      // The body goes to the next endpoint when the first one cannot be reached.
      else if (chosen.length > 1) await this.#keep(exchange, side);
      call.ended(
        "picked",
        chosen.map(({ name }) => name),
      );
      return { session, endpoints: chosen, isReported: false };
    } catch (error) {
      // A picker that has given an answer of no use ends the stream by itself.
      if (error instanceof CalloutError) session?.finish();
      session?.cancel();
      if (!(error instanceof CalloutError)) {
        // The client has left, or the time of the request is over.
        call.ended("cancelled");
        throw error;
      }
      const detail = error.detail ?? error.message;
      if (!this.#failOpen || error.misconfigured || held === undefined) {
        call.ended("failed", [], detail);
        throw new ProxyError("picker_failed", { detail, cause: error });
      }
      call.ended("failed_open", [], detail);
      side.body = held.body;
      exchange.addLogField("inferencePicker", "failed open");
      return { session: undefined, endpoints: [], isReported: true };
    }
  }

  /** @returns undefined when the body is not held, because nothing needs it or it is too long */
  async #hold(exchange: RoutedExchange, side: Side): Promise<{ readonly body: Body } | undefined> {
    if (!this.#failOpen && exchange.tried === undefined) return undefined;
    return this.#keep(exchange, side);
  }

  /** Holds the body in memory. @returns undefined when it is too long, and streams */
  async #keep(exchange: RoutedExchange, side: Side): Promise<{ readonly body: Body } | undefined> {
    const { body } = side;
    if (body === null || Buffer.isBuffer(body)) return { body };
    const held = await holdStart(body, exchange.requestLimitBytes, exchange);
    side.body = held.complete ? held.start : held.body;
    return held.complete ? { body: held.start } : undefined;
  }

  #open(exchange: RoutedExchange, onDestination: (value: string) => void): ProcSession {
    const { service } = this.#deps;
    if (service.invalidReason !== undefined) throw new CalloutError(service.invalidReason, { misconfigured: true });
    const session = new ProcSession(service, exchange, {
      modes: MODES,
      allowOverride: true,
      onMetadata(metadata) {
        const value = destinationOf(metadata);
        if (value !== undefined) onDestination(value);
      },
    });
    exchange.onDone(() => session.cancel());
    return session;
  }

  /** Tries the chosen endpoints in turn; an attempt of a retry policy begins where the one before has ended. */
  async #forward<R extends Reply>(
    exchange: RoutedExchange,
    { session, endpoints }: Choice,
    forward: Forward<R>,
  ): Promise<{ readonly picked: PickedReply<R>; readonly endpoint: EndpointState }> {
    for (;;) {
      const endpoint = session === undefined ? await this.#deps.balance(exchange) : endpoints[0];
      if (endpoint === undefined)
        throw new ProxyError("endpoint_unavailable", { detail: "no chosen endpoint is left" });
      // The last one stays, for further attempts.
      if (endpoints.length > 1) endpoints.shift();
      exchange.pickedEndpoint = endpoint.name;
      if (exchange.debug !== undefined) {
        const { endpoints: all, nowMs } = this.#deps;
        const isNamed = session !== undefined;
        traceSelection(exchange.debug, all.all, { chosen: endpoint.name, nowMs: nowMs(), isNamed });
      }
      try {
        const answer = forward(endpoint);
        return { picked: session === undefined ? { reply: await answer } : await firstOf(session, answer), endpoint };
      } catch (error) {
        const mayGoOn = endpoints.length > 0 && endpoints[0] !== endpoint && isUnsent(error, exchange);
        if (mayGoOn) continue;
        if (!(error instanceof CalloutError)) throw error;
        throw new ProxyError("picker_failed", { detail: error.detail ?? error.message, cause: error });
      }
    }
  }
}

/** Counts and shows one question to a picker, from its first byte to the choice. */
class PickerCall {
  readonly #exchange: RoutedExchange;
  readonly #meter: BackendMeter | undefined;
  readonly #startedAtMs: number = performance.now();

  constructor(exchange: RoutedExchange, { meter }: Pick<PickerDeps, "meter">) {
    this.#exchange = exchange;
    this.#meter = meter;
  }

  /** @param endpoints "address:port" of those that the picker has named */
  ended(result: PickerResult, endpoints: readonly string[] = [], error?: string): void {
    this.#meter?.picked(result, (performance.now() - this.#startedAtMs) / 1000);
    const severity = error === undefined ? "success" : "error";
    this.#exchange.debug?.record(
      { type: "endpointPick", result, endpoints, error: error ?? null },
      { startedAtMs: this.#startedAtMs, severity },
    );
  }
}

/** @throws CalloutError when none of the named endpoints belongs to the pool */
function findNamed(value: string, offered: OfferedEndpoints): EndpointState[] {
  const chosen = parseDestinations(value).flatMap((name) => offered.find(name) ?? []);
  if (chosen.length > 0) return chosen;
  throw new CalloutError(value === "" ? "the picker names no endpoint" : "the picker names no endpoint of the pool");
}

/** A stream may have been read in part when the connection failed, so only a body in memory is sent again. */
function isUnsent(error: unknown, { requestBody }: RoutedExchange): boolean {
  if (!(error instanceof ProxyError) || !UNSENT.has(error.code)) return false;
  return requestBody === null || Buffer.isBuffer(requestBody);
}

/** A retry policy reads the answer of a picker like that of an endpoint: another provider may serve the request. */
function ownReply(response: ImmediateResponse): Reply {
  return { ...immediateReply(response), upstream: true };
}

/** Returns the reply, or an immediate response of a picker that still reads the body. */
async function firstOf<R extends Reply>(session: ProcSession, answer: Promise<R>): Promise<PickedReply<R>> {
  const first = await Promise.race([answer, session.immediate]);
  if ("upstream" in first) return { reply: first };
  void answer.then(discard, () => undefined);
  return { own: ownReply(first) };
}

interface Served<R extends Reply> {
  readonly exchange: RoutedExchange;
  readonly reply: R;
  readonly endpoint: EndpointState;
}

/**
 * Tells the picker which endpoint has served, and lets it change the response. A picker that fails here changes nothing:
 * the response is there.
 */
async function report<R extends Reply>(
  session: ProcSession,
  { exchange, reply, endpoint }: Served<R>,
): Promise<PickedReply<R>> {
  if (!reply.upstream || session.over || reply.tunnel !== undefined) {
    session.finish();
    return { reply };
  }
  session.accompany("response", { attributes: {}, metadata: servedBy(endpoint.name) });
  const before = session.handed;
  session.handed = false;
  try {
    const instead = await new SideProcessor(session, responseSide(reply), exchange, true).run();
    session.finish();
    if (instead === undefined) return { reply };
    discard(reply);
    return { own: ownReply(instead) };
  } catch (error) {
    if (!(error instanceof CalloutError)) throw error;
    if (session.handed && !before) throw new ProxyError("picker_failed", { detail: error.message, cause: error });
    exchange.addLogField("inferencePicker", "failed after the response");
    return { reply };
  }
}

async function wholeBody(body: Body, limitBytes: number): Promise<Body> {
  if (body === null || Buffer.isBuffer(body)) return body;
  const whole = await collect(body, limitBytes);
  if (whole === undefined) throw new CalloutError(`the picker made a body longer than ${limitBytes} bytes`);
  return whole;
}
