/** The official client of Bedrock over HTTP/1.1, which our servers speak; its own transport speaks HTTP/2 alone. */
import { request, type IncomingMessage } from "node:http";
import { BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
import { AWS_KEYS } from "../servers/llm/bedrock.ts";

interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export function bedrockClient(port: number, credentials: object = AWS_KEYS): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    region: AWS_KEYS.region,
    endpoint: `http://127.0.0.1:${port}`,
    maxAttempts: 1,
    // The keys have the members of credentials, and more.
    credentials: credentials as typeof AWS_KEYS,
    requestHandler: {
      handle: (sent: ClientRequest) => send(port, sent),
      updateHttpClientConfig: () => undefined,
      httpHandlerConfigs: () => ({}),
    },
  });
}

async function send(port: number, { method, path, headers, body }: ClientRequest): Promise<{ response: never }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request({ host: "127.0.0.1", port, method, path, headers, agent: false });
    outgoing.on("response", resolve);
    outgoing.on("error", reject);
    outgoing.end(body);
  });
  const response = { statusCode: answer.statusCode ?? 0, headers: answer.headers, body: answer };
  // The client reads these three members of a response.
  return { response: response as never };
}
