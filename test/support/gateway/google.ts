/** Gateways in front of the strict servers of Google, and the official clients in front of those gateways. */
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { ProofContext } from "../proofs/prove.ts";
import { GEMINI_KEY, GOOGLE_TOKEN, PROJECT, startGoogle, type GoogleServer } from "../servers/llm/google.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "./gateway.ts";

export interface Place {
  readonly prefix: string;
  /** @param provider members of a provider as YAML flow */
  ai(provider: string): string;
}

export const SINGLE: Place = { prefix: "GwBackend spec.ai.provider", ai: (provider) => `{provider: {${provider}}}` };
export const MEMBER: Place = {
  prefix: "GwBackend spec.ai.groups[].providers[]",
  ai: (provider) => `{groups: [{providers: [{name: one, ${provider}}]}]}`,
};

function aiBackend(ai: string, key: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: ${ai}
  policies: {auth: {key: ${key}}}
`;
}

export interface Served {
  readonly google: GoogleServer;
  readonly gateway: TestGateway;
}

export async function serveGemini(
  context: ProofContext,
  provider = "llmf: {}",
  place: Place = SINGLE,
): Promise<Served> {
  const google = await startGoogle(context);
  const backend = aiBackend(place.ai(`${provider}, host: 127.0.0.1, port: ${google.port}`), GEMINI_KEY);
  return { google, gateway: await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"))) };
}

/** @param settings members of `llmg` beside the project */
export async function serveVertex(
  context: ProofContext,
  location: string,
  settings = "",
  place: Place = SINGLE,
): Promise<Served> {
  const google = await startGoogle(context, location);
  const provider = `llmg: {projectId: ${PROJECT}${settings}}, host: 127.0.0.1, port: ${google.port}`;
  const backend = aiBackend(place.ai(provider), GOOGLE_TOKEN);
  return { google, gateway: await startGateway(context, documents(GATEWAY, backend, route("ai", "ai"))) };
}

export function openaiClient({ gateway }: Pick<Served, "gateway">): OpenAI {
  return new OpenAI({ apiKey: "of-the-client", baseURL: `${gateway.url()}/v1`, maxRetries: 0 });
}

export function googleClient({ gateway }: Pick<Served, "gateway">): GoogleGenAI {
  return new GoogleGenAI({ apiKey: "of-the-client", httpOptions: { baseUrl: gateway.url() } });
}
