/** The operation `Models`: the provider's own list of models, or one entry of it. */
import { pathOf } from "../../../lib/network/request-target.ts";
import { ProxyError } from "../../exchange/errors.ts";
import { sendCall } from "../call/send.ts";
import { forwardResponse, type Operation } from "./operation.ts";

export const listModels: Operation = async ({ endpoint, exchange, out, upstream }) => {
  const { node, provider } = endpoint;
  if (provider.operations?.(node).includes("Models") !== true)
    throw new ProxyError("llm_format_unserved", {
      text: "failed to process LLM request: this provider lists no models",
    });
  // The path is the client's, where a name is percent-encoded already.
  const [, name = ""] = /\/models\/+(.*?)\/*$/.exec(pathOf(out?.path ?? exchange.target)) ?? [];
  return sendCall(
    {
      endpoint,
      to: { wire: "Models", model: name, streaming: false },
      operation: "models",
      out,
      method: out?.method ?? exchange.method,
      body: out === undefined ? exchange.requestBody : out.body,
      ledger: undefined,
      read: (answer) => forwardResponse(answer, exchange),
    },
    exchange,
    upstream,
  );
};
