/** A gateway whose listener speaks TLS, as the official client of sessions demands, in front of a fake of OpenAI. */
import { once } from "node:events";
import OpenAI from "openai";
import { WebSocket } from "ws";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { OPENAI_KEY } from "../servers/llm/openai.ts";
import { startRealtime, type RealtimeServer } from "../servers/llm/openai-realtime.ts";
import { validNow } from "../servers/tls-upstream.ts";
import { documents, gatewayOf, pemObject, route, startGateway, type TestGateway } from "./gateway.ts";

/** The authority of the listener's certificate. */
export const AUTHORITY: ReturnType<typeof createAuthority> = createAuthority("test", validNow());

interface SecureGateway {
  readonly realtime: RealtimeServer;
  readonly gateway: TestGateway;
  readonly url: string;
  readonly client: OpenAI;
}

/**
 * @param provider as YAML flow, such as `llma: {}`
 * @param more further objects
 * @param policies of the backend, each with a comma in front
 */
export async function connectSecurely(
  context: ProofContext,
  provider: string,
  more = "",
  policies = "",
): Promise<SecureGateway> {
  const realtime = await startRealtime(context);
  const { certificate, key } = createLeaf(AUTHORITY, ["127.0.0.1"], validNow());
  const listener = "{name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}";
  const backend = `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec:
  ai: {provider: {${provider}, host: 127.0.0.1, port: ${realtime.port}}}
  policies: {auth: {key: ${OPENAI_KEY}}${policies}}
`;
  const secret = pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key });
  const gateway = await startGateway(
    context,
    documents(gatewayOf([listener]), secret, backend, route("ai", "ai"), ...(more === "" ? [] : [more])),
  );
  const url = `https://127.0.0.1:${new URL(gateway.url(8443)).port}`;
  return { realtime, gateway, url, client: new OpenAI({ apiKey: "of-the-client", baseURL: `${url}/v1` }) };
}

/** Opens a WebSocket and leaves it. @returns "opened", or why it was refused */
export async function openingOf(url: string): Promise<string> {
  const socket = new WebSocket(url, [], { ca: AUTHORITY.certificate });
  try {
    await once(socket, "open");
  } catch (error) {
    return (error as Error).message;
  }
  socket.terminate();
  return "opened";
}
