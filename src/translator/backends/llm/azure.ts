/**
 * Translates `llmc`, an Azure OpenAI endpoint given by its address, and `llmd`, an Azure resource given by its name.
 * Both become one AzureService. `index.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { EndpointSettings, ResourceSettings } from "../../../../generated/types/llm.ts";
import { AzureServiceSchema, AzureSurface } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { ProviderContext, ProviderPart } from "./provider.ts";

const IDENTITY = "azure";
const DEFAULT_VERSION = "v1";
const TLS_PORT = 443;
const OPENAI_SUFFIX = ".openai.azure.com";
const FOUNDRY_SUFFIX = ".services.ai.azure.com";

/** Matches host and port of an address, after the scheme and before any path. */
const ENDPOINT = /^(?:https?:\/\/)?(\[[0-9a-f:.]+\]|[^/?#@:[\]]+)(?::(\d{1,5}))?(?:[/?#].*)?$/is;
const MAX_PORT = 65_535;

export function translateAzureEndpoint(
  { endpoint, deploymentName, apiVersion }: EndpointSettings,
  { error }: ProviderContext,
): ProviderPart | undefined {
  const [, host, digits] = ENDPOINT.exec(endpoint) ?? [];
  const port = digits === undefined ? TLS_PORT : Number(digits);
  if (host === undefined || port < 1 || port > MAX_PORT) {
    error(
      "llmc.endpoint",
      `"${endpoint}" is not a host with an optional port; write it as my-resource${OPENAI_SUFFIX}`,
    );
    return undefined;
  }
  const isFoundry = host.toLowerCase().endsWith(FOUNDRY_SUFFIX);
  return {
    identity: IDENTITY,
    model: deploymentName ?? "",
    service: {
      case: "azure",
      value: create(AzureServiceSchema, {
        surface: isFoundry ? AzureSurface.FOUNDRY : AzureSurface.OPENAI,
        host: host.replace(/^\[|\]$/g, ""),
        port,
        // An endpoint names no project; the one that has the name of the resource stands in for it.
        project: isFoundry ? host.slice(0, -FOUNDRY_SUFFIX.length) : "",
        apiVersion: apiVersion ?? DEFAULT_VERSION,
      }),
    },
  };
}

export function translateAzureResource({
  resourceName,
  resourceType,
  model,
  apiVersion,
  projectName,
}: ResourceSettings): ProviderPart {
  const isFoundry = resourceType === "ResB";
  return {
    identity: IDENTITY,
    model: model ?? "",
    service: {
      case: "azure",
      value: create(AzureServiceSchema, {
        surface: isFoundry ? AzureSurface.FOUNDRY : AzureSurface.OPENAI,
        host: isFoundry ? `${resourceName}-resource${FOUNDRY_SUFFIX}` : `${resourceName}${OPENAI_SUFFIX}`,
        port: TLS_PORT,
        project: projectName ?? "",
        apiVersion: apiVersion ?? DEFAULT_VERSION,
      }),
    },
  };
}
