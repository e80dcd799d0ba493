/** `traffic.extAuth`: asks an external service whether a request may pass. */
import type { ExtAuthChoice } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Exchange, Next, Reply } from "../../exchange/exchange.ts";
import { compileChoice } from "../shared/conditional.ts";
import { applyHeaderOptions } from "../shared/header-options.ts";
import type { Policy } from "../policy.ts";
import { responseTarget } from "../shared/response-support.ts";
import { compileCheck, decide, refuse, type Check } from "./check.ts";
import type { Allowed } from "./verdict.ts";

export const extAuth: Policy<ExtAuthChoice> = {
  compile({ branches }, deps) {
    const choose = compileChoice(branches, (branch) => compileCheck(branch.extAuth, deps), deps, "choose");
    return function extAuth(exchange, next) {
      const check = choose(exchange);
      return check === undefined ? next() : authorize(check, exchange, next);
    };
  },
};

async function authorize(check: Check, exchange: Exchange, next: Next): Promise<Reply> {
  const verdict = await decide(check, exchange);
  return verdict.allowed ? pass(verdict, next) : refuse(verdict);
}

async function pass({ responseHeaders }: Allowed, next: Next): Promise<Reply> {
  const reply = await next();
  if (responseHeaders.length > 0) applyHeaderOptions(responseHeaders, responseTarget(reply));
  return reply;
}
