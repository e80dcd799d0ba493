/**
 * The gateways of the comparison, each in front of the same recorders: this one, LiteLLM and Portkey. The two others are
 * pinned and installed into the cache of the benchmark, which compares them too.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PEERS } from "../../bench/peers.ts";
import { start } from "../../bench/process.ts";
import { freePort } from "../../support/fixtures/free-ports.ts";
import { documents, GATEWAY, route, startGateway } from "../../support/gateway/gateway.ts";
import type { ProofContext } from "../../support/proofs/prove.ts";
import { ANTHROPIC_KEY } from "../../support/servers/llm/anthropic.ts";
import { AWS_KEYS, BEDROCK_API_KEY } from "../../support/servers/llm/bedrock.ts";
import { GEMINI_KEY } from "../../support/servers/llm/google.ts";
import { OPENAI_KEY } from "../../support/servers/llm/openai.ts";
import { startVendors, type VendorName, type Vendors } from "../../support/servers/llm/vendors.ts";
import type { ClientName } from "./bodies.ts";
import { startRecorder, type Recorder } from "./recorder.ts";

export type VendorFormat = "Completions" | "Messages" | "Responses" | "Gemini" | "Converse";

interface Place {
  readonly vendor: VendorName;
  readonly model: string;
  readonly credential: readonly [name: string, value: string];
  /** Provider of this gateway, in flow YAML. */
  readonly provider: string;
}

const CLAUDE = "claude-sonnet-4-5";
const BEDROCK_CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0";
const OPENAI: readonly [string, string] = ["authorization", `Bearer ${OPENAI_KEY}`];

export const PLACES: Readonly<Record<VendorFormat, Place>> = {
  Completions: {
    vendor: "openai",
    model: "m-1",
    credential: OPENAI,
    provider: "custom: {formats: [{type: Completions}]}",
  },
  Responses: {
    vendor: "openai",
    model: "gpt-4.1",
    credential: OPENAI,
    provider: "custom: {formats: [{type: Responses}]}",
  },
  Messages: { vendor: "anthropic", model: CLAUDE, credential: ["x-api-key", ANTHROPIC_KEY], provider: "llme: {}" },
  Gemini: {
    vendor: "gemini",
    model: "gemini-2.5-flash",
    credential: ["x-goog-api-key", GEMINI_KEY],
    provider: "llmf: {}",
  },
  Converse: {
    vendor: "bedrock",
    model: BEDROCK_CLAUDE,
    credential: ["authorization", `Bearer ${BEDROCK_API_KEY}`],
    provider: "llmh: {region: eu-west-1}",
  },
};

const FORMATS = Object.keys(PLACES) as readonly VendorFormat[]; // the keys of the table above

/** A gateway that can be asked. */
interface Subject {
  readonly name: string;
  /** Base URL and headers for requests that are to reach the vendor in this format. */
  access(format: VendorFormat): { readonly url: string; readonly headers: Readonly<Record<string, string>> };
}

export interface Peer extends Subject {
  /** The translations that it can do too. */
  readonly pairs: readonly (readonly [ClientName, VendorFormat])[];
}

export interface Comparison {
  readonly vendors: Vendors;
  readonly recorders: Readonly<Record<VendorFormat, Recorder>>;
  readonly own: Subject;
  readonly peers: readonly Peer[];
}

/** Starts vendors, recorders and gateways; the first time, the peers are installed. */
export async function startComparison(context: ProofContext): Promise<Comparison> {
  const vendors = await startVendors(context);
  const entries = FORMATS.map(async (format) => {
    const { vendor, credential } = PLACES[format];
    const { port } = vendors[vendor];
    return [format, await startRecorder(context, { port, credential, isGoogle: vendor === "gemini" })] as const;
  });
  // One entry of each format.
  const recorders = Object.fromEntries(await Promise.all(entries)) as Record<VendorFormat, Recorder>;
  const own = await startOwn(context, recorders);
  const peers = await Promise.all([startLiteLlm(context, recorders), startPortkey(context, recorders)]);
  return { vendors, recorders, own, peers };
}

type Recorders = Comparison["recorders"];

async function startOwn(context: ProofContext, recorders: Recorders): Promise<Subject> {
  const objects = FORMATS.flatMap((format) => {
    const name = format.toLowerCase();
    const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  ai: {provider: {${PLACES[format].provider}, host: 127.0.0.1, port: ${recorders[format].port}}}
  policies: {auth: {key: any}}
`;
    return [backend, route(name, name, `/${name}`)];
  });
  const gateway = await startGateway(context, documents(GATEWAY, ...objects));
  return { name: "gwproxy", access: (format) => ({ url: `${gateway.url()}/${format.toLowerCase()}`, headers: {} }) };
}

const LITELLM_PAIRS: Peer["pairs"] = [
  ["Completions", "Messages"],
  ["Completions", "Gemini"],
  ["Completions", "Converse"],
  ["Messages", "Completions"],
  ["Messages", "Responses"],
  ["Messages", "Converse"],
  ["Responses", "Completions"],
  ["Responses", "Messages"],
  ["Responses", "Converse"],
  ["Gemini", "Completions"],
  ["Gemini", "Messages"],
  ["Gemini", "Converse"],
];

/** The provider of LiteLLM that speaks a format, and where it takes the address of the vendor. */
const LITELLM_PROVIDERS: Readonly<Record<VendorFormat, { readonly prefix: string; readonly base: string }>> = {
  Completions: { prefix: "lm_studio/", base: "/v1" },
  Responses: { prefix: "openai/", base: "/v1" },
  Messages: { prefix: "anthropic/", base: "" },
  Gemini: { prefix: "gemini/", base: "/v1beta" },
  Converse: { prefix: "bedrock/converse/", base: "" },
};

async function startLiteLlm(context: ProofContext, recorders: Recorders): Promise<Peer> {
  const port = await freePort();
  const models = FORMATS.map((format) => {
    const { prefix, base } = LITELLM_PROVIDERS[format];
    const { model } = PLACES[format];
    const keys = {
      aws_access_key_id: AWS_KEYS.accessKeyId,
      aws_secret_access_key: AWS_KEYS.secretAccessKey,
      aws_region_name: AWS_KEYS.region,
    };
    const params = {
      model: `${prefix}${model}`,
      api_base: `http://127.0.0.1:${recorders[format].port}${base}`,
      ...(format === "Converse" ? keys : { api_key: "any" }),
    };
    return { model_name: model, litellm_params: params };
  });
  const config = {
    model_list: models,
    // Parameters that a model does not take are left out, as this gateway does.
    litellm_settings: { num_retries: 0, telemetry: false, drop_params: true },
    general_settings: { dangerously_permit_weak_or_unset_master_key: true },
  };
  const url = await startPeer(context, { name: "litellm", port, config });
  return { name: "litellm", pairs: LITELLM_PAIRS, access: () => ({ url, headers: {} }) };
}

const PORTKEY_PAIRS: Peer["pairs"] = [
  ["Completions", "Messages"],
  ["Completions", "Gemini"],
  ["Completions", "Converse"],
];

const PORTKEY_PROVIDERS: Readonly<Partial<Record<VendorFormat, { readonly name: string; readonly base: string }>>> = {
  Messages: { name: "anthropic", base: "/v1" },
  Gemini: { name: "google", base: "" },
  Converse: { name: "bedrock", base: "" },
};

async function startPortkey(context: ProofContext, recorders: Recorders): Promise<Peer> {
  const port = await freePort();
  const url = await startPeer(context, { name: "portkey", port, config: undefined });
  return {
    name: "portkey",
    pairs: PORTKEY_PAIRS,
    access(format) {
      const { name = "", base = "" } = PORTKEY_PROVIDERS[format] ?? {};
      const headers = {
        authorization: "Bearer any",
        "x-portkey-provider": name,
        "x-portkey-custom-host": `http://127.0.0.1:${recorders[format].port}${base}`,
        "x-portkey-aws-access-key-id": AWS_KEYS.accessKeyId,
        "x-portkey-aws-secret-access-key": AWS_KEYS.secretAccessKey,
        "x-portkey-aws-region": AWS_KEYS.region,
      };
      return { url, headers };
    },
  };
}

interface PeerStart {
  readonly name: string;
  readonly port: number;
  /** Written as the file that the peer is told with --config. */
  readonly config: object | undefined;
}

/** Starts a peer of the benchmark at another port. @returns its base URL */
async function startPeer(context: ProofContext, { name, port, config }: PeerStart): Promise<string> {
  const peer = PEERS.find((each) => each.name === name);
  if (peer === undefined) throw new Error(`the benchmark has no peer ${name}`);
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-peer-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "config.yaml");
  // JSON is YAML too.
  if (config !== undefined) writeFileSync(file, JSON.stringify(config));
  const command = await peer.prepare(folder);
  const args = command.args.map((arg, at) => {
    if (command.args[at - 1] === "--config") return file;
    return arg.replace(String(peer.port), String(port));
  });
  const url = `http://127.0.0.1:${port}`;
  const running = await start({ ...command, args }, new URL(peer.probe, url), peer.startLimitMs);
  context.after(() => running.stop());
  return url;
}
