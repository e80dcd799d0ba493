/**
 * The providers `llmc` and `llmd`: Azure OpenAI, and projects of Azure AI Foundry, whose Claude models speak the
 * Anthropic format.
 */
import { create } from "@bufbuild/protobuf";
import {
  AzureSurface,
  BackendAuthSchema,
  type AzureService,
  type Provider as ProviderNode,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { ConfigError } from "../../../../lib/errors.ts";
import { requireSegment } from "../../shared/model-name.ts";
import { setApiVersion } from "../anthropic/index.ts";
import type { Provider, ProviderCall, Wire } from "../provider.ts";
import { moveMaxTokens } from "../shared/max-tokens.ts";
import { withModel } from "../shared/standard-path.ts";

export const azure: Provider = {
  defaultHost: (node) => serviceOf(node).host,
  defaultPort: (node) => serviceOf(node).port,
  formats: (node, model) =>
    speaksAnthropic(serviceOf(node), model)
      ? ["Messages", "MessagesTokenCount", "Embeddings", "Rerank"]
      : ["Completions", "Responses", "Embeddings", "Rerank"],
  operations: (node) => (serviceOf(node).surface === AzureSurface.OPENAI ? ["Models", "Realtime"] : ["Models"]),
  path: (node, call) => withModel(pathOf(serviceOf(node), call), call),
  defaultAuth: create(BackendAuthSchema, {
    kind: {
      case: "cloudB",
      value: { source: { case: "managedIdentity", value: { clientId: "", objectId: "", resourceId: "" } } },
    },
  }),
  headers(headers, { wire }) {
    if (wire === "Messages" || wire === "MessagesTokenCount") setApiVersion(headers);
  },
  adjustBody: moveMaxTokens,
};

/** @throws ConfigError for a node that the translator did not make */
function serviceOf({ service, key }: ProviderNode): AzureService {
  if (service.case === "azure") return service.value;
  throw new ConfigError(`the provider ${key} has no Azure service`);
}

function speaksAnthropic({ surface }: AzureService, model: string): boolean {
  return surface === AzureSurface.FOUNDRY && /^claude\b/i.test(model);
}

const OPERATIONS: Readonly<Partial<Record<Wire, string>>> = {
  Completions: "chat/completions",
  Responses: "responses",
  Embeddings: "embeddings",
  Realtime: "realtime",
  Models: "models",
  Rerank: "rerank",
};

function pathOf({ surface, project, apiVersion }: AzureService, { wire, model }: ProviderCall): string {
  if (wire === "Messages") return "/anthropic/v1/messages";
  if (wire === "MessagesTokenCount") return "/anthropic/v1/messages/count_tokens";
  const operation = OPERATIONS[wire] ?? "";
  if (surface === AzureSurface.FOUNDRY) return `/api/projects/${encodeURIComponent(project)}/openai/v1/${operation}`;
  // Sessions and lists have one path in all versions.
  if (apiVersion === "v1" || wire === "Realtime" || wire === "Models") return `/openai/v1/${operation}`;
  const query = `?api-version=${encodeURIComponent(apiVersion)}`;
  if (apiVersion === "preview") return `/openai/v1/${operation}${query}`;
  // Versions by date have one path for each deployment; responses came later and name the model in the body alone.
  if (wire === "Responses") return `/openai/responses${query}`;
  return `/openai/deployments/${encodeURIComponent(requireSegment(model))}/${operation}${query}`;
}
