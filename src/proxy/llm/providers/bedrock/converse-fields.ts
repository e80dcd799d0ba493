/** Fields of a Converse request that do not come from the client's body: guardrail, metadata and features in beta. */
import type { BedrockGuardrail } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../../../lib/header-list.ts";
import type { Losses } from "../../conversation/losses.ts";
import { objectOf, parseObject, type JsonObject } from "../../shared/json.ts";
import { invalidRequest } from "../../shared/request-fields.ts";

export const METADATA_HEADER = "x-bedrock-metadata";
export const BETA_HEADER = "anthropic-beta";

/** Features in beta of the Messages API that Claude models offer behind Converse. */
const BETAS: ReadonlySet<string> = new Set([
  "computer-use-2025-01-24",
  "token-efficient-tools-2025-02-19",
  "interleaved-thinking-2025-05-14",
  "output-128k-2025-02-19",
  "context-1m-2025-08-07",
  "context-management-2025-06-27",
  "effort-2025-11-24",
  "tool-search-tool-2025-10-19",
  "tool-examples-2025-10-29",
]);

interface FieldSources {
  readonly model: string;
  readonly guardrail: BedrockGuardrail | undefined;
  /** Headers of the client. */
  readonly headers: HeaderList;
  readonly losses: Losses;
}

/** @throws ProxyError llm_request_invalid for metadata that are not a JSON object of texts */
export function addConverseFields(body: JsonObject, { model, guardrail, headers, losses }: FieldSources): void {
  if (guardrail !== undefined)
    body["guardrailConfig"] = {
      guardrailIdentifier: guardrail.identifier,
      guardrailVersion: guardrail.version,
      trace: "enabled",
    };
  const metadata = headers.get(METADATA_HEADER);
  if (metadata !== undefined) body["requestMetadata"] = readMetadata(metadata);
  const betas = readBetas(headers, model, losses);
  if (betas.length > 0)
    body["additionalModelRequestFields"] = {
      ...objectOf(body["additionalModelRequestFields"]),
      anthropic_beta: betas,
    };
}

function readMetadata(text: string): JsonObject {
  const metadata = parseObject(Buffer.from(text, "latin1"));
  if (metadata === undefined || Object.values(metadata).some((value) => typeof value !== "string"))
    throw invalidRequest(`header ${METADATA_HEADER} must be a JSON object of strings`);
  return metadata;
}

function readBetas(headers: HeaderList, model: string, losses: Losses): string[] {
  const asked = headers
    .getAll(BETA_HEADER)
    .flatMap((value) => value.split(","))
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const isClaude = model.toLowerCase().includes("claude");
  const known = new Set(asked.filter((name) => isClaude && BETAS.has(name)));
  for (const name of asked) if (!known.has(name)) losses.add(`${BETA_HEADER} ${name}`);
  return [...known];
}
