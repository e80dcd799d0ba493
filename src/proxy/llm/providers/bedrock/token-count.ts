/**
 * Token counts on Bedrock Runtime: the request of the Messages API is wrapped as the native body of a call that the
 * service only counts.
 */
import { ProxyError } from "../../../exchange/errors.ts";
import { countOf, type JsonObject } from "../../shared/json.ts";
import type { OperationForm } from "../../shared/operation-form.ts";

/** Whether the service counts for a model: it knows foundation models alone, and no profile in their place. */
export function canCount(model: string): boolean {
  return model.includes("anthropic.claude") && !model.includes("inference-profile");
}

/** Returns the foundation model behind the name of a cross-region profile, such as `eu.anthropic.claude-…`. */
export function foundationModel(model: string): string {
  return model.replace(/^[a-z-]{2,6}\.(?=anthropic\.)/, "");
}

/** Version of the native bodies of Claude models. */
const VERSION = "bedrock-2023-05-31";

export const tokenCount: OperationForm = {
  printRequest({ model: _model, stream: _stream, ...body }) {
    // A native body has to have a limit, which does not count.
    const native: JsonObject = { ...body, anthropic_version: VERSION, max_tokens: 1 };
    return { input: { invokeModel: { body: Buffer.from(JSON.stringify(native)).toString("base64") } } };
  },
  readAnswer(answer) {
    const tokens = countOf(answer["inputTokens"]);
    if (tokens === undefined)
      throw new ProxyError("llm_response_invalid", { detail: "a token count without a number of tokens" });
    return { input_tokens: tokens };
  },
};
