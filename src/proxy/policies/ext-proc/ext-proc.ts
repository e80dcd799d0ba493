/**
 * Lets an external processor inspect and change requests and responses (`envoy.service.ext_proc.v3.ExternalProcessor`),
 * with one stream for both.
 *
 *   open stream ─▶ headers ─▶ body by its mode ─▶ trailers ─▶ next() ─▶ the same for the response ─▶ finish
 *
 * It fails open only while no byte of a body was handed over, because the original is lost afterwards. An immediate
 * response of the processor ends the request at any time before the response has begun.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type {
  BodyMutation,
  CommonResponse,
  ImmediateResponse,
} from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { CommonResponse_ResponseStatus as Status } from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { BodyMode, type ExtProc, type ExtProcChoice } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import type { Scope } from "../../../cel/scope.ts";
import { ConfigError } from "../../../lib/errors.ts";
import { CalloutError, type Callout } from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { holdStart, type HeldBody } from "../../exchange/buffering.ts";
import type { Exchange, Next, Reply } from "../../exchange/exchange.ts";
import { compileChoice } from "../shared/conditional.ts";
import { failOpen } from "../shared/failure-mode.ts";
import { jsonOf } from "../shared/expression-support.ts";
import { DuplexBody, SplicedBody, TrailedBody } from "./bodies.ts";
import { bodyPart, headersPart, immediateReply, mutate, requestSide, responseSide, type Side } from "./messages.ts";
import { compileMode, type Modes } from "./modes.ts";
import { ProcSession, type Extras } from "./session.ts";
import type { Policy, PolicyDeps } from "../policy.ts";
import { captureResponse } from "../shared/response-support.ts";

type Values = readonly (readonly [string, Expression])[];

interface Compiled {
  readonly service: Callout;
  readonly failOpen: boolean;
  readonly modes: Modes;
  readonly allowOverride: boolean;
  readonly metadata: readonly (readonly [string, Values])[];
  readonly attributes: { readonly request: Values; readonly response: Values };
}

/** Namespace of the attributes, as existing processors read it. */
const ATTRIBUTES = "envoy.filters.http.ext_proc";

export const extProc: Policy<ExtProcChoice> = {
  compile({ branches }, deps) {
    const choose = compileChoice(branches, (branch) => compileProcessor(branch.extProc, deps), deps, "pass over");
    return function extProc(exchange, next) {
      const processor = choose(exchange);
      return processor === undefined ? next() : process(processor, exchange, next);
    };
  },
};

function compileProcessor(spec: ExtProc | undefined, deps: PolicyDeps): Compiled {
  if (spec === undefined) throw new ConfigError("an external processor branch says nothing");
  const values = (expressions: Readonly<Record<string, string>>, place: CelPhase): Values =>
    Object.entries(expressions).map(([name, source]) => [name, deps.expression(source, place)]);
  return {
    service: deps.callout(spec.service, "ExtProc"),
    failOpen: spec.failOpen,
    modes: { request: compileMode(spec.request), response: compileMode(spec.response) },
    allowOverride: spec.allowModeOverride,
    metadata: Object.entries(spec.metadataContext).map(([name, { expressions }]) => [
      name,
      values(expressions, "request"),
    ]),
    attributes: {
      request: values(spec.requestAttributes, "request"),
      response: values(spec.responseAttributes, "response"),
    },
  };
}

async function process(processor: Compiled, exchange: Exchange, next: Next): Promise<Reply> {
  const session = open(processor, exchange);
  if (session === undefined) return next();
  exchange.onDone(() => session.cancel());
  session.accompany("request", extrasOf(processor, processor.attributes.request, exchange));
  const atOnce = await processSide(processor, session, requestSide(exchange), exchange);
  if (atOnce !== undefined) return immediateReply(atOnce);
  const reply = await firstOf(session, next());
  if (!reply.upstream || session.over) {
    session.finish();
    return reply;
  }
  const scope = await captureResponse(exchange, reply, false);
  session.accompany("response", extrasOf(processor, processor.attributes.response, scope));
  const instead = await processSide(processor, session, responseSide(reply), exchange);
  session.finish();
  if (instead === undefined) return reply;
  discard(reply);
  return immediateReply(instead);
}

/**
 * @returns undefined when the processor cannot be reached and the policy fails open
 * @throws ProxyError ext_proc_failed
 */
function open(processor: Compiled, exchange: Exchange): ProcSession | undefined {
  const { service, modes, allowOverride } = processor;
  if (service.invalidReason !== undefined) throw new ProxyError("ext_proc_failed", { detail: service.invalidReason });
  try {
    return new ProcSession(service, exchange, { modes, allowOverride });
  } catch (error) {
    failOpen("extProc", processor.failOpen, error, exchange);
    return undefined;
  }
}

/**
 * Returns the reply, or an immediate response if that comes first: the processor may reject a body that it still reads.
 */
async function firstOf(session: ProcSession, answer: Reply | Promise<Reply>): Promise<Reply> {
  if (!(answer instanceof Promise)) return answer;
  const first = await Promise.race([answer, session.immediate]);
  if (!("upstream" in first)) {
    void answer.then(discard);
    return immediateReply(first);
  }
  return first;
}

function discard({ body }: Reply): void {
  if (body !== null && !Buffer.isBuffer(body)) body.destroy();
}

/**
 * Shows one side to the processor.
 * @returns its immediate response, if it gives one
 * @throws ProxyError ext_proc_failed
 */
async function processSide(
  processor: Compiled,
  session: ProcSession,
  side: Side,
  exchange: Exchange,
): Promise<ImmediateResponse | undefined> {
  try {
    return await new SideProcessor(processor, session, side, exchange).run();
  } catch (error) {
    // Without the part that was handed over the original message is no longer complete.
    failOpen("extProc", processor.failOpen && !session.handed, error, exchange);
    return undefined;
  }
}

class SideProcessor {
  readonly #processor: Compiled;
  readonly #session: ProcSession;
  readonly #side: Side;
  readonly #exchange: Exchange;

  constructor(processor: Compiled, session: ProcSession, side: Side, exchange: Exchange) {
    this.#processor = processor;
    this.#session = session;
    this.#side = side;
    this.#exchange = exchange;
  }

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
    return new DuplexBody(body, kind, this.#session, this.#processor.failOpen);
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
      side.body = new TrailedBody(side.body, side.kind, session, this.#processor.failOpen);
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

function extrasOf({ metadata }: Compiled, attributes: Values, scope: Scope): Extras {
  const namespaces = metadata.map(([name, values]) => [name, read(values, scope)] as const);
  return {
    attributes: attributes.length === 0 ? {} : { [ATTRIBUTES]: read(attributes, scope) },
    metadata: namespaces.length === 0 ? undefined : Object.fromEntries(namespaces),
  };
}

/** Values whose expression fails are omitted. */
function read(values: Values, scope: Scope): JsonObject {
  const found: JsonObject = {};
  for (const [name, expression] of values) {
    const value = jsonOf(expression, scope);
    if (value !== undefined) found[name] = value;
  }
  return found;
}
