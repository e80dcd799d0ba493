/**
 * Applies the parts of an `ai` block that change a client's body before its model is known, and settles the model: the
 * pinned one, else that of the body, then changed by fields and aliases. The LLM handler uses it.
 */
import { pathOf } from "../../lib/network/request-target.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import type { ChatFormat, LlmRequest } from "./formats/chat-format.ts";
import type { JsonObject } from "./shared/json.ts";
import { readModelName } from "./shared/model-name.ts";
import { modelOf } from "./shared/native-path.ts";
import type { AiPolicies } from "./policies/index.ts";

export interface PolicyContext {
  readonly client: ChatFormat;
  readonly policies: AiPolicies;
  /** Name of the model in place of the client's; "" for none. */
  readonly pinned: string;
  readonly exchange: RoutedExchange;
}

/** @throws ProxyError llm_request_invalid, llm_model_missing */
export function applyPolicies(
  body: JsonObject,
  { client, policies, pinned, exchange }: PolicyContext,
): LlmRequest & { readonly model: string } {
  const { fields, renameModel } = policies;
  if (fields !== undefined) {
    // Expressions see the pinned model, or that of the path, and may replace it.
    const model = pinned === "" && !client.namesModel ? client.parse(body, exchange.target).model : pinned;
    if (model !== undefined && model !== "") body["model"] = model;
    fields.apply(body, exchange);
  }
  const request = client.parse(body, exchange.target);
  const named = client.namesModel ? modelOf(pathOf(exchange.target), request.model) : takeModel(body, request, fields);
  const model = pinned === "" || fields !== undefined ? named : pinned;
  if (model === undefined || model === "")
    throw new ProxyError("llm_model_missing", {
      text: "failed to process LLM request: missing field: model not specified",
    });
  return { ...request, model: renameModel === undefined ? model : renameModel(model) };
}

/**
 * Takes the name out of a body of a format whose paths name the model: it counts only where a field was written to it.
 */
function takeModel(body: JsonObject, { model }: LlmRequest, fields: AiPolicies["fields"]): string | undefined {
  const written = fields === undefined ? undefined : readModelName(body["model"]);
  body["model"] = undefined;
  return written ?? model;
}
