/**
 * Holds a whole request body back until its end is known. A longer one is refused with 413 and no text, or streams on
 * where the policy says so. Its limit is that of whoever reads the body later. The other direction is `response-buffer`.
 */
import type { BodyBuffers } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../errors.ts";
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
