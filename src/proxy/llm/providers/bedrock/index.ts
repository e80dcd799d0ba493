/** The provider `llmh`: Amazon Bedrock, Runtime (Converse) and the surface with the formats of the models' vendors. */
import { create } from "@bufbuild/protobuf";
import {
  BackendAuthSchema,
  BedrockEndpoint,
  type BedrockService,
  type Provider as ProviderNode,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../../lib/header-list.ts";
import { percentEncode } from "../../../../lib/percent-encode.ts";
import { NO_TAGS } from "../../cost/catalog.ts";
import type { FormatName } from "../../formats/chat-format.ts";
import { requireSegment } from "../../shared/model-name.ts";
import { setApiVersion } from "../anthropic/index.ts";
import type { Provider, ProviderCall } from "../provider.ts";
import { addConverseFields, BETA_HEADER, METADATA_HEADER } from "./converse-fields.ts";
import { embeddingDialect } from "./embeddings.ts";
import { rerankIn } from "./rerank.ts";
import { canCount, foundationModel, tokenCount } from "./token-count.ts";
import { altFormats, altPath, surfaceOf, type ChatSurface } from "./surface.ts";

/** What has an address of its own: the surfaces of chats, and the runtime of agents, which ranks documents. */
type Surface = ChatSurface | "agents";

const DEFAULT_REGION = "us-east-1";
/** Names of the surfaces in signatures. */
const SERVICES: Readonly<Record<Surface, string>> = { runtime: "bedrock", agents: "bedrock", alt: "bedrock-mantle" };
/** Headers that neither surface takes: keys travel in `authorization`, metadata in the body. */
const REMOVED = ["x-api-key", METADATA_HEADER];
/** Headers of the Messages API that Runtime has no use for; features in beta travel in the body. */
const REMOVED_FROM_RUNTIME = ["anthropic-version", "anthropic-dangerous-direct-browser-access", BETA_HEADER];
/** Clients of the Responses API name their conversations in these headers, which break signatures. */
const REMOVED_FROM_RESPONSES = ["conversation_id", "session_id"];

const CONVERSE: readonly FormatName[] = ["Converse"];

export const bedrock: Provider = {
  defaultHost: (node) => hostOf(node, "runtime"),
  host: (node, call) => hostOf(node, surfaceServing(call, node)),
  formats(node, model, tags) {
    if (embeddingDialect(model) !== undefined) return ["Embeddings"];
    if (model.toLowerCase().includes("rerank")) return ["Rerank"];
    const chats = surfaceOf(serviceOf(node).endpoint, tags) === "runtime" ? CONVERSE : altFormats(model, tags);
    return canCount(model) ? [...chats, "MessagesTokenCount"] : chats;
  },
  ownForm(call, node) {
    const { wire, model } = call;
    switch (wire) {
      case "Rerank":
        return rerankIn(serviceOf(node).region);
      case "Embeddings":
        return embeddingDialect(model);
      case "MessagesTokenCount":
        return surfaceServing(call, node) === "runtime" ? tokenCount : undefined;
      default:
        return undefined;
    }
  },
  operations: () => ["Models"],
  path(node, call) {
    const { wire, model, streaming } = call;
    switch (wire) {
      case "Converse":
        return `/model/${encodeModel(model)}/${streaming ? "converse-stream" : "converse"}`;
      case "Embeddings":
        return `/model/${encodeModel(model)}/invoke`;
      case "Rerank":
        return "/rerank";
      case "MessagesTokenCount":
        return surfaceServing(call, node) === "alt"
          ? altPath(wire, model)
          : `/model/${encodeModel(foundationModel(model))}/count-tokens`;
      default:
        return altPath(wire, model);
    }
  },
  headers: adjustHeaders,
  adjustBody(body, { wire, model, headers, losses }, node) {
    if (wire === "Converse") addConverseFields(body, { model, guardrail: serviceOf(node).guardrail, headers, losses });
  },
  defaultAuth: create(BackendAuthSchema, { kind: { case: "cloudA", value: {} } }),
  signingScope: (node, call) => ({
    region: serviceOf(node).region,
    service: SERVICES[surfaceServing(call, node)],
  }),
};

type Settings = Pick<BedrockService, "region" | "guardrail" | "endpoint">;

const DEFAULTS: Settings = { region: DEFAULT_REGION, endpoint: BedrockEndpoint.RUNTIME_PREFERRED };

function serviceOf({ service }: ProviderNode): Settings {
  return service.case === "bedrock" ? service.value : DEFAULTS;
}

/**
 * Embeddings, rerank and what is passed through have their places whatever the preference is; lists of models and the
 * formats of other vendors are on Alt.
 */
function surfaceServing({ wire, tags = NO_TAGS }: Pick<ProviderCall, "wire" | "tags">, node: ProviderNode): Surface {
  switch (wire) {
    case "Rerank":
      return "agents";
    case "Converse":
    case "Embeddings":
    case "Detect":
    case "Passthrough":
      return "runtime";
    case "MessagesTokenCount":
      // Both surfaces count for Claude models, where both offer the model.
      return surfaceOf(serviceOf(node).endpoint, tags);
    default:
      return "alt";
  }
}

function hostOf(node: ProviderNode, surface: Surface): string {
  const { region } = serviceOf(node);
  switch (surface) {
    case "runtime":
      return `bedrock-runtime.${region}.amazonaws.com`;
    case "agents":
      return `bedrock-agent-runtime.${region}.amazonaws.com`;
    case "alt":
      return `bedrock-mantle.${region}.api.aws`;
  }
}

/**
 * Encodes a name as one segment, as the official clients do. Names of resources have separators in them.
 * @throws ProxyError llm_model_invalid for a name that could steer the path where it is decoded
 */
function encodeModel(model: string): string {
  return percentEncode(requireSegment(model));
}

function adjustHeaders(headers: HeaderList, call: ProviderCall, node: ProviderNode): void {
  const { wire } = call;
  // What is passed through keeps its headers, but for the key that the client has for the gateway.
  if (wire === "Passthrough") return headers.remove("x-api-key");
  for (const name of REMOVED) headers.remove(name);
  const isAlt = surfaceServing(call, node) === "alt";
  if (!isAlt) for (const name of REMOVED_FROM_RUNTIME) headers.remove(name);
  if (wire === "Responses") for (const name of REMOVED_FROM_RESPONSES) headers.remove(name);
  if (isAlt && (wire === "Messages" || wire === "MessagesTokenCount")) setApiVersion(headers);
}
