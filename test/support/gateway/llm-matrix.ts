/**
 * The matrix of client formats and providers: one gateway with a route for each provider, and the strict vendors behind
 * them. `matrix.test.ts` walks its cells.
 */
import type { ProofContext } from "../proofs/prove.ts";
import { ANTHROPIC_KEY } from "../servers/llm/anthropic.ts";
import { BEDROCK_API_KEY } from "../servers/llm/bedrock.ts";
import { GEMINI_KEY, GOOGLE_TOKEN, PROJECT } from "../servers/llm/google.ts";
import { OPENAI_KEY } from "../servers/llm/openai.ts";
import { LOCATION, startVendors, type VendorName, type Vendors } from "../servers/llm/vendors.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "./gateway.ts";

export type Wire = "Completions" | "Messages" | "Responses" | "Gemini" | "Converse";

export interface Row {
  readonly name: string;
  /** Members of the provider as YAML flow. */
  readonly provider: string;
  readonly model: string;
  readonly vendor: VendorName;
  /** The provider's format by the client's; a client without one gets 400, and "other" stands in another row. */
  readonly wires: Readonly<Partial<Record<string, Wire | "other">>>;
  /** Where the vendor is called; a stream of Google and of Bedrock is asked for in the path. */
  readonly paths: Readonly<Partial<Record<Wire, string>>>;
}

const C = "Completions";
const M = "Messages";
const R = "Responses";
const G = "Gemini";

const OPENAI_PATHS = { [C]: "/v1/chat/completions", [M]: "/v1/messages", [R]: "/v1/responses" } as const;
const COPILOT_PATHS = { [C]: "/chat/completions", [M]: "/v1/messages", [R]: "/responses" } as const;
const V1_PATHS = { [C]: "/openai/v1/chat/completions", [R]: "/openai/v1/responses" } as const;
const FOUNDRY = "/api/projects/lab/openai/v1";
const AZURE = "https://acme.openai.azure.com";
const RES_B = "llmd: {resourceName: acme, resourceType: ResB, projectName: lab}";
const VERTEX = `llmg: {projectId: ${PROJECT}, region: ${LOCATION}}`;
const VERTEX_PATH = `/v1/projects/${PROJECT}/locations/${LOCATION}`;
const BEDROCK_CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0";

const OPENAI_WIRES = { [C]: C, [M]: C, [R]: R, [G]: C } as const;
const ALL_MESSAGES = { [C]: M, [M]: M, [R]: M, [G]: M } as const;
const ALL_COMPLETIONS = { [C]: C, [M]: C, [R]: C, [G]: C } as const;
const ALL_CONVERSE = { [C]: "Converse", [M]: "Converse", [R]: "Converse", [G]: "Converse" } as const;
const RESPONSES_ALONE = { [M]: R, [R]: R } as const;

/** @param title name, model and vendor, divided by blanks */
function row(title: string, provider: string, rest: Pick<Row, "wires" | "paths">): Row {
  const [name = "", model = "", vendor = ""] = title.split(" ");
  return { name, provider, model, vendor: vendor as VendorName, ...rest }; // the rows below name vendors
}

function custom(name: string, formats: string, vendor: VendorName, wires: Row["wires"]): Row {
  const list = formats.split(" ").map((type) => `{type: ${type}}`);
  return row(`${name} m-1 ${vendor}`, `custom: {formats: [${list.join(", ")}]}`, { wires, paths: OPENAI_PATHS });
}

export const ROWS: readonly Row[] = [
  row("llma gpt-9 openai", "llma: {}", { wires: OPENAI_WIRES, paths: OPENAI_PATHS }),
  row("llmb-gpt-4 gpt-4o openai", "llmb: {}", { wires: ALL_COMPLETIONS, paths: COPILOT_PATHS }),
  row("llmb-gpt-5-mini gpt-5-mini openai", "llmb: {}", { wires: OPENAI_WIRES, paths: COPILOT_PATHS }),
  row("llmb-gpt-5 gpt-5 openai", "llmb: {}", { wires: RESPONSES_ALONE, paths: COPILOT_PATHS }),
  row("llmb-grok grok-4 openai", "llmb: {}", { wires: RESPONSES_ALONE, paths: COPILOT_PATHS }),
  row("llmb-gemini gemini-3-pro openai", "llmb: {}", { wires: ALL_COMPLETIONS, paths: COPILOT_PATHS }),
  // Claude models have two formats there, so two vendors stand for them.
  row("llmb-claude claude-sonnet-4-5 openai", "llmb: {}", {
    wires: { [C]: C, [M]: "other", [R]: C, [G]: C },
    paths: COPILOT_PATHS,
  }),
  row("llmb-claude-native claude-sonnet-4-5 anthropic", "llmb: {}", {
    wires: { [C]: "other", [M]: M, [R]: "other", [G]: "other" },
    paths: COPILOT_PATHS,
  }),
  row("llmc gpt-9 openai", `llmc: {endpoint: "${AZURE}"}`, { wires: OPENAI_WIRES, paths: V1_PATHS }),
  row("llmc-dated gpt-9 openai", `llmc: {endpoint: "${AZURE}", apiVersion: "2024-10-21", deploymentName: gpt-9}`, {
    wires: OPENAI_WIRES,
    paths: { [C]: "/openai/deployments/gpt-9/chat/completions", [R]: "/openai/responses" },
  }),
  row("llmd-res-a gpt-9 openai", "llmd: {resourceName: acme, resourceType: ResA}", {
    wires: OPENAI_WIRES,
    paths: V1_PATHS,
  }),
  row("llmd-res-b gpt-9 openai", RES_B, {
    wires: OPENAI_WIRES,
    paths: { [C]: `${FOUNDRY}/chat/completions`, [R]: `${FOUNDRY}/responses` },
  }),
  row("llmd-claude claude-opus-4-5 anthropic", RES_B, {
    wires: ALL_MESSAGES,
    paths: { [M]: "/anthropic/v1/messages" },
  }),
  row("llme claude-sonnet-4-5 anthropic", "llme: {}", { wires: ALL_MESSAGES, paths: OPENAI_PATHS }),
  row("llme-adaptive claude-opus-4-7 anthropic", "llme: {}", { wires: ALL_MESSAGES, paths: OPENAI_PATHS }),
  row("llmf gemini-2.5-flash gemini", "llmf: {}", {
    wires: { [C]: G, [M]: C, [R]: C, [G]: G },
    paths: { [C]: "/v1beta/openai/chat/completions", [G]: "/v1beta/models/gemini-2.5-flash" },
  }),
  row("llmf-3 gemini-3-pro-preview gemini", "llmf: {}", {
    wires: { [C]: G, [M]: C, [R]: C, [G]: G },
    paths: { [C]: "/v1beta/openai/chat/completions", [G]: "/v1beta/models/gemini-3-pro-preview" },
  }),
  row("llmg-gemini gemini-3-pro-preview vertex", VERTEX, {
    wires: { [C]: G, [M]: C, [R]: C, [G]: G },
    paths: {
      [C]: `${VERTEX_PATH}/endpoints/openapi/chat/completions`,
      [G]: `${VERTEX_PATH}/publishers/google/models/gemini-3-pro-preview`,
    },
  }),
  row("llmg-claude claude-sonnet-4-5-20250929 vertex", VERTEX, {
    wires: ALL_MESSAGES,
    paths: { [M]: `${VERTEX_PATH}/publishers/anthropic/models/claude-sonnet-4-5@20250929` },
  }),
  row("llmg-other meta/llama-4 vertex", VERTEX, {
    wires: ALL_COMPLETIONS,
    paths: { [C]: `${VERTEX_PATH}/endpoints/openapi/chat/completions` },
  }),
  row(`llmh ${BEDROCK_CLAUDE} bedrock`, "llmh: {region: eu-west-1}", {
    wires: ALL_CONVERSE,
    paths: { Converse: `/model/${encodeURIComponent(BEDROCK_CLAUDE)}` },
  }),
  row("llmh-nova amazon.nova-pro-v1:0 bedrock", "llmh: {region: eu-west-1}", {
    wires: ALL_CONVERSE,
    paths: { Converse: "/model/amazon.nova-pro-v1%3A0" },
  }),
  row("llmh-alt-claude anthropic.claude-opus-4-7 anthropic", "llmh: {endpointPreference: AltOnly}", {
    wires: ALL_MESSAGES,
    paths: { [M]: "/anthropic/v1/messages" },
  }),
  row("llmh-alt-open openai.gpt-oss-120b openai", "llmh: {endpointPreference: AltOnly}", {
    wires: OPENAI_WIRES,
    paths: OPENAI_PATHS,
  }),
  row("llmh-alt-openai openai.gpt-9 openai", "llmh: {endpointPreference: AltOnly}", {
    wires: RESPONSES_ALONE,
    paths: { [R]: "/openai/v1/responses" },
  }),
  row("llmh-alt-other qwen.qwen3 openai", "llmh: {endpointPreference: AltOnly}", {
    wires: ALL_COMPLETIONS,
    paths: OPENAI_PATHS,
  }),
  custom("custom-completions", "Completions", "openai", ALL_COMPLETIONS),
  custom("custom-messages", "Messages", "anthropic", ALL_MESSAGES),
  custom("custom-responses", "Responses", "openai", RESPONSES_ALONE),
  // The order of the list has no meaning.
  custom("custom-openai", "Responses Completions", "openai", OPENAI_WIRES),
];

const KEYS: Readonly<Record<VendorName, string>> = {
  openai: OPENAI_KEY,
  anthropic: ANTHROPIC_KEY,
  gemini: GEMINI_KEY,
  vertex: GOOGLE_TOKEN,
  bedrock: BEDROCK_API_KEY,
};

function backend({ name, provider, vendor }: Row, vendors: Vendors): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${provider}, host: 127.0.0.1, port: ${vendors[vendor].port}}}
  policies: {auth: {key: ${KEYS[vendor]}}}
`;
}

export interface Matrix {
  readonly vendors: Vendors;
  readonly gateway: TestGateway;
}

/** Starts everything. A row is served below the path of its name. */
export async function startMatrix(context: ProofContext): Promise<Matrix> {
  const vendors = await startVendors(context);
  const objects = ROWS.flatMap((each) => [backend(each, vendors), route(each.name, each.name, `/${each.name}`)]);
  return { vendors, gateway: await startGateway(context, documents(GATEWAY, ...objects)) };
}
