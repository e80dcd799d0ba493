/**
 * The provider `llmg`: Vertex AI. The name of the model decides: Gemini models speak their own format, Claude models that
 * of Anthropic, every other model chat completions at one fixed path.
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendAuthSchema,
  type Provider as ProviderNode,
  type VertexService,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../lib/errors.ts";
import type { FormatName } from "../../formats/chat-format.ts";
import type { Wire, Provider } from "../provider.ts";
import type { OperationForm } from "../../shared/operation-form.ts";
import { signCalls } from "../shared/compatible-signatures.ts";
import { geminiMethod } from "../shared/gemini-method.ts";
import { REFUSED_BY_GOOGLE } from "../shared/google-parameters.ts";
import { printPathSegment } from "../shared/path-segment.ts";
import { adjustMessages } from "./messages-body.ts";
import { predictions } from "./embeddings.ts";
import { ranking } from "./rank.ts";
import { familyOf, withoutPublisher, type ModelFamily } from "./model.ts";

const FORMATS: Readonly<Record<ModelFamily, readonly FormatName[]>> = {
  gemini: ["Gemini", "Completions", "Embeddings", "Rerank", "GeminiTokenCount"],
  claude: ["Messages", "MessagesTokenCount"],
  other: ["Completions", "Embeddings", "Rerank"],
};

const OWN_FORMS: Readonly<Partial<Record<Wire, OperationForm>>> = { Embeddings: predictions, Rerank: ranking };

export const vertex: Provider = {
  refusedParameters: REFUSED_BY_GOOGLE,
  defaultHost(node) {
    const { location } = serviceOf(node);
    if (location === "global") return "aiplatform.googleapis.com";
    if (location === "us" || location === "eu") return `aiplatform.${location}.rep.googleapis.com`;
    return `${location}-aiplatform.googleapis.com`;
  },
  formats: (_node, model) => FORMATS[familyOf(model).family],
  ownForm: ({ wire }) => OWN_FORMS[wire],
  host(node, { wire }) {
    return wire === "Rerank" ? "discoveryengine.googleapis.com" : vertex.defaultHost(node);
  },
  path(node, { wire, model, streaming }) {
    const { project, location } = serviceOf(node);
    const base = `/v1/projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(location)}`;
    const { name } = familyOf(model);
    switch (wire) {
      case "Gemini":
        return `${base}/publishers/google/models/${printPathSegment(name)}${geminiMethod(streaming)}`;
      case "Messages":
        return `${base}/publishers/anthropic/models/${printPathSegment(name)}${streaming ? ":streamRawPredict" : ":rawPredict"}`;
      case "MessagesTokenCount":
        return `${base}/publishers/anthropic/models/count-tokens:rawPredict`;
      case "GeminiTokenCount":
        return `${base}/publishers/google/models/${printPathSegment(name)}:countTokens`;
      case "Rerank":
        // The ranking service is not regional.
        return `/v1/projects/${encodeURIComponent(project)}/locations/global/rankingConfigs/default_ranking_config:rank`;
      case "Embeddings":
        return `${base}/publishers/google/models/${printPathSegment(withoutPublisher(model))}:predict`;
      default:
        return `${base}/endpoints/openapi/chat/completions`;
    }
  },
  defaultAuth: create(BackendAuthSchema, { kind: { case: "cloudC", value: {} } }),
  adjustBody(body, call) {
    const { wire, model } = call;
    const { family, name } = familyOf(model);
    if (wire === "Messages" || wire === "MessagesTokenCount") {
      adjustMessages(body);
      // The path of counts holds no model.
      if (wire === "MessagesTokenCount") body["model"] = name;
      return;
    }
    signCalls(body, call);
    // The compatible endpoint knows models by publisher and name.
    if (wire === "Completions" && family === "gemini") body["model"] = `google/${name}`;
  },
};

/** @throws ConfigError for a node that the translator did not make */
function serviceOf({ service, key }: ProviderNode): VertexService {
  if (service.case === "vertex") return service.value;
  throw new ConfigError(`the provider ${key} has no Vertex service`);
}
