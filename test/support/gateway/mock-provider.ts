/** Starts a mock LLM provider on loopback, and renders the GwBackend `ai` that leads to it. */
import { serveMockProvider, type MockProvider } from "../../../examples/mock-provider/mock-provider.ts";
import type { Answer } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";

/** The one key that the provider accepts. */
export const PROVIDER_KEY = "provider-key";

export async function startMockProvider(context: Pick<ProofContext, "after">): Promise<MockProvider> {
  const provider = await serveMockProvider({ port: 0, keys: [PROVIDER_KEY] });
  context.after(() => provider.stop());
  return provider;
}

/** Returns the message of an error in the format of an LLM client. */
export function errorMessageOf({ body }: Pick<Answer, "body">): string {
  return (JSON.parse(body) as { error: { message: string } }).error.message;
}

/**
 * @param format vendor whose format the provider speaks
 * @param key credential that the gateway sends
 */
export function mockBackend(port: number, format: "llma" | "llme" = "llma", key: string = PROVIDER_KEY): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {${format}: {}, host: 127.0.0.1, port: ${port}}}
  policies: {auth: {key: ${key}}}
`;
}
