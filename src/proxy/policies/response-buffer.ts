/**
 * Holds a response back until its whole body has arrived. A longer body gives 502 with an empty text, or streams on
 * when the policy fails open. `buffer` handles the other direction; both are one block of the API with two positions in
 * the order.
 */
import type { BodyBuffers } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ProxyError } from "../exchange/errors.ts";
import { holdStart, type HeldBody } from "../exchange/buffering.ts";
import type { Policy } from "./policy.ts";

const SWITCHING_PROTOCOLS = 101;

export const responseBuffer: Policy<BodyBuffers> = {
  compile({ response }) {
    return async function responseBuffer(exchange, next) {
      const reply = await next();
      if (response === undefined) return reply;
      const limitBytes = (exchange.responseLimitBytes = response.maxBytes || exchange.responseLimitBytes);
      const { body } = reply;
      if (body === null || reply.status === SWITCHING_PROTOCOLS) return reply;
      const held: Pick<HeldBody, "complete" | "body"> = Buffer.isBuffer(body)
        ? { complete: body.length <= limitBytes, body }
        : await holdStart(body, limitBytes, exchange);
      reply.body = held.body;
      if (held.complete || response.failOpen) return reply;
      if (!Buffer.isBuffer(body)) body.destroy();
      throw new ProxyError("response_too_large", { text: "" });
    };
  },
};
