/** Gateways in front of the strict Bedrock server: their objects, and what reached the server. */
import assert from "node:assert/strict";
import type { ProofContext } from "../proofs/prove.ts";
import { AWS_KEYS, type BedrockServer } from "../servers/llm/bedrock.ts";
import { documents, GATEWAY, pemObject, route, startGateway, type TestGateway } from "./gateway.ts";

/** A Secret with the keys that the strict server knows. */
export function keySecret(
  name: string,
  { accessKeyId, secretAccessKey, sessionToken }: typeof AWS_KEYS = AWS_KEYS,
): string {
  const token = sessionToken === undefined ? {} : { sessionToken };
  return pemObject("Secret", name, { accessKey: accessKeyId, secretKey: secretAccessKey, ...token });
}

/** Policies of a backend whose requests are signed with the keys of the Secret `aws`. */
export const SIGNED: string = "auth: {cloudA: {secretRef: {name: aws}}}";
/** Region that the strict server takes signatures for. */
export const REGION: string = AWS_KEYS.region;

/** @param ai flow YAML of `spec.ai` @param policies flow YAML of the members of `spec.policies` */
export function bedrockBackend(ai: string, policies: string = SIGNED): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {ai: ${ai}, policies: {${policies}}}
`;
}

/** Starts a gateway with a route to the backend `ai`, and with the Secret `aws`. */
export function serveBedrock(context: ProofContext, ...objects: readonly string[]): Promise<TestGateway> {
  return startGateway(context, documents(GATEWAY, keySecret("aws"), route("ai", "ai"), ...objects));
}

/** Returns the newest request that the strict server has taken. */
export function newest({ seen }: BedrockServer): BedrockServer["seen"][number] {
  const last = seen.at(-1);
  assert.ok(last, "nothing reached the provider");
  return last;
}
