/** Decides by expressions whether a request continues; the rules are evaluated in `shared/authorization-rules`. */
import type { Authorization } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import { compileRules, explainRules } from "./shared/authorization-rules.ts";
import type { Policy } from "./policy.ts";

export const authorization: Policy<Authorization> = {
  compile({ rules }, deps) {
    const decide = compileRules(rules, (source) => deps.expression(source, "request"));
    return function authorization(exchange, next) {
      const detail = decide(exchange);
      exchange.debug?.record({
        type: "authorizationResult",
        rules: explainRules(rules, (source) => deps.expression(source, "request"), exchange),
        result: detail === undefined ? "allow" : "deny",
      });
      if (detail !== undefined) throw new ProxyError("authorization_failed", { detail });
      return next();
    };
  },
};
