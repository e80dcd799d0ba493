/**
 * Holds a request back until its whole body has arrived. A longer body is refused with 413 and an empty text, or
 * streams on when the policy fails open. The limit also applies to later steps that read the body. `response-buffer`
 * handles the other direction.
 */
import type { BodyBuffers } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Policy } from "./policy.ts";

export const buffer: Policy<BodyBuffers> = {
  compile({ request }) {
    return async function buffer(exchange, next) {
      if (request === undefined) return next();
      exchange.requestLimitBytes = request.maxBytes || exchange.requestLimitBytes;
      if (exchange.requestBody === null) return next();
      const whole = await exchange.bufferRequestBody(exchange.requestLimitBytes);
      if (whole === undefined && !request.failOpen) throw new ProxyError("body_too_large", { text: "" });
      return next();
    };
  },
};
