/**
 * The operation `Passthrough`: path, body and answer stay as they are; only host, prefix, TLS and credential are the
 * provider's. No budget of tokens is charged.
 */
import { ProxyError } from "../../exchange/errors.ts";
import type { Body } from "../../exchange/body.ts";
import { sendCall } from "../call/send.ts";
import { forwardResponse, type Operation, type OperationContext } from "./operation.ts";

export const passThrough: Operation = async (context) => {
  const { endpoint, exchange, out, upstream } = context;
  return sendCall(
    {
      endpoint,
      to: { wire: "Passthrough", model: endpoint.node.model, streaming: false },
      operation: "passthrough",
      out,
      method: out?.method ?? exchange.method,
      body: await bodyOf(context),
      upgrade: exchange.upgrade,
      ledger: undefined,
      read: (answer) => forwardResponse(answer, exchange),
    },
    exchange,
    upstream,
  );
};

/** A signature covers the whole body, so a body that is signed is held first. */
async function bodyOf({ endpoint, exchange, given }: OperationContext): Promise<Body> {
  if (endpoint.auth?.sign === undefined || given === null || Buffer.isBuffer(given)) return given;
  const held = await exchange.bufferRequestBody(exchange.requestLimitBytes);
  if (held === undefined) throw new ProxyError("body_too_large");
  return held;
}
