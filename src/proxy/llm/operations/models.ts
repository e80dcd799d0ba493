/**
 * The operations `Models` and `GeminiModels`: the provider's own list of models, or one entry of it, in the form of OpenAI
 * or of Google.
 */
import { pathOf } from "../../../lib/network/request-target.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Reply } from "../../exchange/exchange.ts";
import { sendCall } from "../call/send.ts";
import { forwardResponse, type Operation, type OperationContext } from "./operation.ts";

/** Clients of Google may ask at the path of all others; they name themselves in a header. */
export const listModels: Operation = (context) => {
  const { endpoint, exchange } = context;
  const isOfGoogle = exchange.requestHeaders.get("x-goog-api-client") !== undefined;
  const hasBoth = endpoint.provider.operations?.(endpoint.node).includes("GeminiModels") === true;
  return forwardList(context, isOfGoogle && hasBoth ? "GeminiModels" : "Models");
};

export const listGeminiModels: Operation = (context) => forwardList(context, "GeminiModels");

/** @throws ProxyError llm_format_unserved */
async function forwardList(
  { endpoint, exchange, out, given, upstream }: OperationContext,
  wire: "Models" | "GeminiModels",
): Promise<Reply> {
  const { node, provider } = endpoint;
  if (provider.operations?.(node).includes(wire) !== true)
    throw new ProxyError("llm_format_unserved", {
      text: "failed to process LLM request: this provider lists no models",
    });
  // The path is the client's, where a name is percent-encoded already.
  const [, name = ""] = /\/models\/+(.*?)\/*$/.exec(pathOf(out?.path ?? exchange.target)) ?? [];
  return sendCall(
    {
      endpoint,
      to: { wire, model: name, streaming: false },
      operation: "models",
      out,
      method: out?.method ?? exchange.method,
      body: given,
      ledger: undefined,
      read: (answer) => forwardResponse(answer, exchange),
    },
    exchange,
    upstream,
  );
}
