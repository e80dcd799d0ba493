/**
 * Answers a request without a backend. A header whose expression fails is omitted; a body whose expression fails gives
 * 500.
 */
import type { DirectResponse, DirectResponseChoice } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { bodyOf } from "../../cel/compile/compile-expression.ts";
import { CelError } from "../../cel/errors.ts";
import type { Expression } from "../../cel/expression.ts";
import { ConfigError } from "../../lib/errors.ts";
import { HeaderList } from "../../lib/header-list.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Exchange, Reply } from "../exchange/exchange.ts";
import { compileChoice } from "./shared/conditional.ts";
import { fieldValueOf } from "./shared/expression-support.ts";
import type { Policy, PolicyDeps } from "./policy.ts";

export const directResponse: Policy<DirectResponseChoice> = {
  compile({ branches }, deps) {
    const choose = compileChoice(branches, ({ response }) => compileAnswer(response, deps), deps, "pass over");
    return function directResponse(exchange, next) {
      const answer = choose(exchange);
      return answer === undefined ? next() : answer(exchange);
    };
  },
};

function compileAnswer(response: DirectResponse | undefined, deps: PolicyDeps): (exchange: Exchange) => Reply {
  if (response === undefined) throw new ConfigError("a direct response branch has no response");
  const { status, bodyExpression } = response;
  const fixedBody = Buffer.from(response.body);
  const computedBody = bodyExpression === "" ? undefined : deps.expression(bodyExpression, "request");
  const headers = response.headers.map(({ name, expression }) => ({
    name,
    expression: deps.expression(expression, "request"),
  }));
  return (exchange) => {
    const list = new HeaderList();
    for (const { name, expression } of headers) {
      const value = fieldValueOf(expression, exchange);
      if (value !== undefined) list.set(name, value);
    }
    const body = computedBody === undefined ? fixedBody : computeBody(computedBody, exchange);
    return { status, headers: list, body: body.length === 0 ? null : body, upstream: false };
  };
}

function computeBody(expression: Expression, exchange: Exchange): Buffer {
  try {
    return bodyOf(expression.evaluate(exchange));
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new ProxyError("expression_failed", { detail: error.message, cause: error });
  }
}
