/**
 * The two surfaces of Bedrock: Runtime, whose chat format is Converse, and the one that speaks the formats of the models'
 * vendors (Alt). Tags of the catalog say which surface and which formats offer a model; without tags its name does.
 */
import type { Wire } from "../provider.ts";
import { withModel } from "../shared/standard-path.ts";
import { BedrockEndpoint } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { FormatName } from "../../formats/chat-format.ts";
import { taggedFormats } from "../shared/tagged-formats.ts";

export type ChatSurface = "runtime" | "alt";

/** @param tags of the model in the catalog */
export function surfaceOf(preference: BedrockEndpoint, tags: ReadonlySet<string>): ChatSurface {
  const isRuntimeAlone = tags.has("runtime") && !tags.has("alt");
  const isAltAlone = tags.has("alt") && !tags.has("runtime");
  switch (preference) {
    case BedrockEndpoint.ALT_ONLY:
      return "alt";
    case BedrockEndpoint.RUNTIME_ONLY:
      return "runtime";
    case BedrockEndpoint.ALT_PREFERRED:
      return isRuntimeAlone ? "runtime" : "alt";
    default:
      return isAltAlone ? "alt" : "runtime";
  }
}

/** Returns the chat formats of Alt for a model. */
export function altFormats(model: string, tags: ReadonlySet<string>): readonly FormatName[] {
  const tagged = taggedFormats(tags);
  if (tagged.length > 0) return tagged;
  if (model.startsWith("anthropic.")) return ["Messages"];
  if (isOpenModel(model)) return ["Completions", "Responses"];
  return model.startsWith("openai.") ? ["Responses"] : ["Completions"];
}

/** Returns the path of a format or of the models on Alt. Models of OpenAI that are not open have a prefix of their own. */
export function altPath(wire: Wire, model: string): string {
  switch (wire) {
    case "Messages":
      return "/anthropic/v1/messages";
    case "MessagesTokenCount":
      return "/anthropic/v1/messages/count_tokens";
    case "Responses":
      return model.startsWith("openai.") && !isOpenModel(model) ? "/openai/v1/responses" : "/v1/responses";
    case "Models":
      return withModel("/v1/models", { wire, model });
    default:
      return "/v1/chat/completions";
  }
}

function isOpenModel(model: string): boolean {
  return model.startsWith("openai.gpt-oss-");
}
