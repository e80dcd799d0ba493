/** The provider `llmh`: Amazon Bedrock, Runtime (Converse) and the surface with the formats of the models' vendors. */
import {
  BedrockEndpoint,
  type BedrockService,
  type Provider as ProviderNode,
} from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { findAwsCredentials } from "../../../backends/aws-credentials.ts";
import { signRequest } from "../../../backends/sigv4.ts";
import type { HeaderList } from "../../../../lib/header-list.ts";
import { setApiVersion } from "../anthropic/index.ts";
import type { Provider, ProviderCall, Wire } from "../provider.ts";
import { addConverseFields, BETA_HEADER, METADATA_HEADER } from "./converse-fields.ts";
import { altFormats, altPath, surfaceOf, type Surface } from "./surface.ts";

const DEFAULT_REGION = "us-east-1";
/** Names of the surfaces in signatures. */
const SERVICES: Readonly<Record<Surface, string>> = { runtime: "bedrock", alt: "bedrock-mantle" };
/** Headers that neither surface takes: keys travel in `authorization`, metadata in the body. */
const REMOVED = ["x-api-key", METADATA_HEADER];
/** Headers of the Messages API that Runtime has no use for; features in beta travel in the body. */
const REMOVED_FROM_RUNTIME = ["anthropic-version", "anthropic-dangerous-direct-browser-access", BETA_HEADER];
/** Clients of the Responses API name their conversations in these headers, which break signatures. */
const REMOVED_FROM_RESPONSES = ["conversation_id", "session_id"];

export const bedrock: Provider = {
  defaultHost: (node) => hostOf(node, "runtime"),
  host: (node, { wire }) => hostOf(node, surfaceFor(wire)),
  formats: (node, model) => (surfaceOf(serviceOf(node).endpoint) === "runtime" ? ["Converse"] : altFormats(model)),
  operations: () => ["Models"],
  path: (_node, { wire, model, streaming }) =>
    wire === "Converse"
      ? `/model/${encodeModel(model)}/${streaming ? "converse-stream" : "converse"}`
      : altPath(wire, model),
  headers: adjustHeaders,
  adjustBody(body, { wire, model, headers, losses }, node) {
    if (wire === "Converse") addConverseFields(body, { model, guardrail: serviceOf(node).guardrail, headers, losses });
  },
  signer(node, auth) {
    const { cloudA } = auth ?? {};
    // Another credential replaces the signature. An address of one's own gets no credential that is not configured.
    if (auth === undefined ? node.host !== "" : cloudA === undefined) return undefined;
    return (request, call) => {
      const service = cloudA?.service || SERVICES[surfaceFor(call.wire)];
      const region = cloudA?.region || serviceOf(node).region;
      const host = node.host || hostOf(node, surfaceFor(call.wire));
      signRequest(request, findAwsCredentials(cloudA, host), { region, service }, Date.now());
    };
  },
};

/** Lists of models are on Alt, and so are the formats of other vendors. */
function surfaceFor(wire: Wire): Surface {
  return wire === "Converse" || wire === "Passthrough" ? "runtime" : "alt";
}

type Settings = Pick<BedrockService, "region" | "guardrail" | "endpoint">;

const DEFAULTS: Settings = { region: DEFAULT_REGION, endpoint: BedrockEndpoint.RUNTIME_PREFERRED };

function serviceOf({ service }: ProviderNode): Settings {
  return service.case === "bedrock" ? service.value : DEFAULTS;
}

function hostOf(node: ProviderNode, surface: Surface): string {
  const { region } = serviceOf(node);
  return surface === "runtime" ? `bedrock-runtime.${region}.amazonaws.com` : `bedrock-mantle.${region}.api.aws`;
}

/** Encodes a name as one segment, as the official clients do. */
function encodeModel(model: string): string {
  return encodeURIComponent(model).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function adjustHeaders(headers: HeaderList, { wire }: ProviderCall): void {
  for (const name of REMOVED) headers.remove(name);
  if (wire === "Converse") for (const name of REMOVED_FROM_RUNTIME) headers.remove(name);
  if (wire === "Responses") for (const name of REMOVED_FROM_RESPONSES) headers.remove(name);
  if (wire === "Messages") setApiVersion(headers);
}
