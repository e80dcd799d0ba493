/** The official A2A client in JavaScript, in each of its bindings. */
import { SendMessageRequest, type AgentCard, type StreamResponse } from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type Client,
} from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";

const COMPAT = { legacyCompat: { enabled: true } };

/** @param url of the agent, without a slash at its end */
export function connectA2a(url: string, binding: string): Promise<Client> {
  const factory = new ClientFactory({
    transports: [
      new JsonRpcTransportFactory(COMPAT),
      new RestTransportFactory(COMPAT),
      new GrpcTransportFactory(COMPAT),
    ],
    preferredTransports: [binding],
    cardResolver: new DefaultAgentCardResolver(COMPAT),
  });
  return factory.createFromUrl(`${url}/`);
}

export function say(text: string): SendMessageRequest {
  return SendMessageRequest.fromJSON({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] },
    configuration: { blocking: true },
  });
}

/** Returns the URLs of HTTP in a card. */
export function urlsOf({ supportedInterfaces }: AgentCard): string[] {
  return supportedInterfaces.filter(({ protocolBinding }) => protocolBinding !== "GRPC").map(({ url }) => url);
}

/** Reads a stream to its end; returns the kinds of its events. */
export async function collectKinds(stream: AsyncIterable<StreamResponse>, onFirst: () => void): Promise<string[]> {
  const kinds: string[] = [];
  for await (const { payload } of stream) {
    kinds.push(payload?.$case ?? "");
    if (kinds.length === 1) onFirst();
  }
  return kinds;
}
