/**
 * Delays a request by a fixed or computed time. The deadline of the request keeps running and ends the wait with 504.
 */
import type { Delay } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Expression } from "../../cel/expression.ts";
import { Duration } from "../../cel/values.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { pause } from "../exchange/pause.ts";
import { valueOf } from "./shared/expression-support.ts";
import type { Policy } from "./policy.ts";

export const delay: Policy<Delay> = {
  compile({ duration }, deps) {
    const expression = duration.case === "expression" ? deps.expression(duration.value, "request") : undefined;
    const fixedMs = duration.case === "ms" ? duration.value : 0;
    return async function delay(exchange, next) {
      const ms = expression === undefined ? fixedMs : computed(expression, exchange);
      if (ms > 0) await pause(exchange, ms);
      return next();
    };
  },
};

/**
 * Returns milliseconds. A number counts as milliseconds; a failed expression or a value of another type means no delay.
 */
function computed(expression: Expression, exchange: Exchange): number {
  const value = valueOf(expression, exchange);
  if (value instanceof Duration) return value.seconds * 1000 + value.nanos / 1_000_000;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : 0;
}
