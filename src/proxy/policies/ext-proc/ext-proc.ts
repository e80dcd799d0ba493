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
import type { ImmediateResponse } from "../../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { ExtProc, ExtProcChoice } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../../cel/expression.ts";
import type { CelPhase } from "../../../cel/environments/phases.ts";
import type { Scope } from "../../../cel/scope.ts";
import { ConfigError } from "../../../lib/errors.ts";
import type { Callout } from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Exchange, Next, Reply } from "../../exchange/exchange.ts";
import { compileChoice } from "../shared/conditional.ts";
import { failOpen } from "../shared/failure-mode.ts";
import { jsonOf } from "../shared/expression-support.ts";
import { immediateReply, requestSide, responseSide, type Side } from "./messages.ts";
import { compileMode, type Modes } from "./modes.ts";
import { ProcSession, type Extras } from "./session.ts";
import { SideProcessor } from "./side-processor.ts";
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
    return await new SideProcessor(session, side, exchange, processor.failOpen).run();
  } catch (error) {
    // Without the part that was handed over the original message is no longer complete.
    failOpen("extProc", processor.failOpen && !session.handed, error, exchange);
    return undefined;
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
