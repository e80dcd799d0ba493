/**
 * Limits that a service counts for all replicas (`envoy.service.ratelimit.v3.RateLimitService`). Requests are counted
 * when they pass here. LLM tokens are checked before the backend is called and charged when the usage is known, so the
 * request that crosses a limit succeeds and the next one is refused. The failure mode decides when the service cannot
 * be asked.
 */
import { create } from "@bufbuild/protobuf";
import {
  RateLimitRequestSchema,
  RateLimitResponse_Code as Code,
  RateLimitService,
  type RateLimitResponse,
} from "../../../../generated/proto/envoy/service/ratelimit/v3/rls_pb.ts";
import type { RateLimitDescriptor } from "../../../../generated/proto/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts";
import type { GlobalRateLimit, GlobalRateLimitBranch } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Scope } from "../../../cel/scope.ts";
import { messageOf } from "../../../lib/errors.ts";
import { CalloutError, type Callout, type Caller } from "../../callouts/callout.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Exchange, Next, Reply, TokenGate } from "../../exchange/exchange.ts";
import { compileChoice } from "../shared/conditional.ts";
import { failOpen } from "../shared/failure-mode.ts";
import type { Policy, PolicyDeps } from "../policy.ts";
import { forgetReport, report, reportRetry, scarcest, setHeaders } from "./answer.ts";
import { compileDescriptor, type CompiledDescriptor } from "./descriptors.ts";
import { captureResponse } from "../shared/response-support.ts";

interface Compiled {
  readonly service: Callout;
  readonly domain: string;
  readonly failOpen: boolean;
  readonly log: PolicyDeps["log"];
  readonly requests: readonly CompiledDescriptor[];
  readonly tokens: readonly CompiledDescriptor[];
}

export const globalRateLimit: Policy<GlobalRateLimit> = {
  compile({ branches }, deps) {
    const choose = compileChoice(branches, (branch) => compileLimit(branch, deps), deps, "choose");
    return function globalRateLimit(exchange, next) {
      const limit = choose(exchange);
      return limit === undefined ? next() : enforce(limit, exchange, next);
    };
  },
};

function compileLimit(branch: GlobalRateLimitBranch, deps: PolicyDeps): Compiled {
  const descriptors = branch.descriptors.map((descriptor) => compileDescriptor(descriptor, deps));
  return {
    service: deps.callout(branch.service, "RateLimit"),
    domain: branch.domain,
    failOpen: branch.failOpen,
    log: deps.log,
    requests: descriptors.filter(({ countsTokens }) => !countsTokens),
    tokens: descriptors.filter(({ countsTokens }) => countsTokens),
  };
}

async function enforce(limit: Compiled, exchange: Exchange, next: Next): Promise<Reply> {
  const { invalidReason } = limit.service;
  if (invalidReason !== undefined) throw new ProxyError("rate_limit_failed", { detail: invalidReason });
  const answer = await ask(limit, readAll(limit.requests, exchange), exchange);
  if (answer !== undefined && answer.overallCode === Code.OVER_LIMIT) return refuse(answer, exchange);
  if (answer !== undefined) setHeaders(answer.requestHeadersToAdd, exchange.requestHeaders);
  const budget = limit.tokens.length === 0 ? undefined : new TokenBudget(limit, exchange);
  if (budget !== undefined) exchange.tokenGates.push(budget);
  const reply = await next();
  if (answer !== undefined) {
    setHeaders(answer.responseHeadersToAdd, reply.headers);
    report(scarcest(answer), exchange.queuedHeaders);
  }
  budget?.answered(await captureResponse(exchange, reply, false));
  return reply;
}

/** Returns the descriptors that a request counts for; those that fail are omitted. */
function readAll(descriptors: readonly CompiledDescriptor[], scope: Scope): RateLimitDescriptor[] {
  return descriptors.flatMap((descriptor) => {
    const read = descriptor.read(scope);
    if (read === undefined || descriptor.cost === undefined) return read ?? [];
    const cost = descriptor.cost(scope);
    if (cost === undefined) return [];
    read.hitsAddend = cost;
    return [read];
  });
}

/**
 * @returns undefined when there is nothing to ask, or when the service cannot be asked and the policy fails open
 * @throws ProxyError rate_limit_failed
 */
async function ask(
  limit: Compiled,
  descriptors: readonly RateLimitDescriptor[],
  exchange: Exchange,
): Promise<RateLimitResponse | undefined> {
  if (descriptors.length === 0) return undefined;
  try {
    return await call(limit, descriptors, exchange);
  } catch (error) {
    failOpen("rateLimit", limit.failOpen, error, exchange);
    return undefined;
  }
}

/** @throws CalloutError, also for a response without a decision */
async function call(
  { service, domain }: Compiled,
  descriptors: readonly RateLimitDescriptor[],
  caller: Caller,
): Promise<RateLimitResponse> {
  const request = create(RateLimitRequestSchema, { domain, descriptors: [...descriptors] });
  const answer = await service.unary(RateLimitService.method.shouldRateLimit, request, caller);
  if (answer.overallCode === Code.OK || answer.overallCode === Code.OVER_LIMIT) return answer;
  throw new CalloutError("the service's answer holds no decision");
}

/** @throws ProxyError rate_limited when the service sends no body of its own */
function refuse(answer: RateLimitResponse, exchange: Exchange): Reply {
  const { queuedHeaders } = exchange;
  const tightest = scarcest(answer);
  // Numbers that an earlier limit reported are not the reason for this rejection.
  if (tightest !== undefined || answer.responseHeadersToAdd.length > 0) forgetReport(queuedHeaders);
  setHeaders(answer.responseHeadersToAdd, queuedHeaders);
  report(tightest, queuedHeaders);
  reportRetry(answer, queuedHeaders);
  const error = new ProxyError("rate_limited");
  if (answer.rawBody.length === 0) throw error;
  const body = Buffer.from(answer.rawBody);
  return { status: error.status, headers: queuedHeaders.clone(), body, upstream: false };
}

/** The token descriptors of one request: checked before it is sent, charged when its usage is known. */
class TokenBudget implements TokenGate {
  readonly #limit: Compiled;
  readonly #exchange: Exchange;
  #charged: { readonly descriptor: CompiledDescriptor; readonly message: RateLimitDescriptor }[] = [];
  #total: number | undefined;
  #scope: Scope | undefined;

  constructor(limit: Compiled, exchange: Exchange) {
    this.#limit = limit;
    this.#exchange = exchange;
  }

  async admit(): Promise<void> {
    this.#charged = this.#limit.tokens.flatMap((descriptor) => {
      const message = descriptor.read(this.#exchange);
      if (message === undefined) return [];
      // Zero hits: asks only whether anything is left, because the usage is not known yet.
      message.hitsAddend = 0n;
      return [{ descriptor, message }];
    });
    const messages = this.#charged.map(({ message }) => message);
    const answer = await ask(this.#limit, messages, this.#exchange);
    if (answer?.overallCode !== Code.OVER_LIMIT) return;
    this.#charged = [];
    setHeaders(answer.responseHeadersToAdd, this.#exchange.queuedHeaders);
    report(scarcest(answer), this.#exchange.queuedHeaders);
    reportRetry(answer, this.#exchange.queuedHeaders);
    throw new ProxyError("rate_limited");
  }

  settle(totalTokens: number): void {
    this.#total = totalTokens;
    this.#charge();
  }

  /** Called with the response, because expressions for the cost may read it. */
  answered(scope: Scope): void {
    this.#scope = scope;
    this.#charge();
  }

  #charge(): void {
    const total = this.#total;
    const scope = this.#scope;
    // Without usage there was no completion to charge for.
    if (total === undefined || total === 0 || scope === undefined) return;
    const messages = this.#charged.flatMap(({ descriptor: { cost }, message }) => {
      const hits = cost === undefined ? BigInt(total) : cost(scope);
      if (hits === undefined || hits === 0n) return [];
      message.hitsAddend = hits;
      return [message];
    });
    this.#charged = [];
    if (messages.length === 0) return;
    // The client has its response or is gone: the charge runs in the background, and a failure can only be logged.
    const caller: Caller = { onAbort: () => undefined, trace: this.#exchange.trace };
    call(this.#limit, messages, caller).catch((error: unknown) => {
      const reason = error instanceof CalloutError ? error.detail : messageOf(error);
      this.#limit.log.warn("token usage was not charged", { domain: this.#limit.domain, reason });
    });
  }
}
