/** Manifests of gateways in front of A2A agents, and the cards that scripted agents show. */
import { documents, GATEWAY } from "./gateway.ts";

export function a2aBackend(name: string, port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {a2a: {host: 127.0.0.1, port: ${port}}}
`;
}

/** Returns a route of a prefix to an agent. @param replacement of the prefix; undefined where it stays */
export function agentRoute(name: string, prefix: string, replacement?: string): string {
  const filter = `{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: ${replacement}}}}`;
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}}
spec:
  parentRefs: [{name: gw, sectionName: http}]
  rules:
    - matches: [{path: {value: ${prefix}}}]
      filters: [${replacement === undefined ? "" : filter}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: ${name}}]
`;
}

/** Returns a gateway that leads /team to the root of an agent, and everything else to its own paths. */
export function agentManifests(port: number): string {
  return documents(
    GATEWAY,
    a2aBackend("team", port),
    agentRoute("team", "/team", "/"),
    a2aBackend("plain", port),
    agentRoute("plain", "/"),
  );
}

const AT_AGENT = "http://agent.internal:9000";

/** A card of 1.0 with three interfaces, whose URLs lead to `base`. */
export function modernCard(base: string = AT_AGENT): object {
  return {
    name: "weather",
    description: "Says how the weather is.",
    supportedInterfaces: [
      { url: `${base}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: `${base}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: "agent.internal:9001", protocolBinding: "GRPC", protocolVersion: "1.0" },
    ],
    provider: { organization: "ours", url: "https://ours.example.com" },
    documentationUrl: `${AT_AGENT}/docs`,
    version: "1.0.0",
    capabilities: { extendedAgentCard: true },
    skills: [],
    signatures: [{ protected: "e30", signature: "c2ln" }],
  };
}

/** A card of 0.3 in the same form. */
export function olderCard(base: string = AT_AGENT): object {
  return {
    name: "weather",
    protocolVersion: "0.3.0",
    url: `${base}/rpc`,
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: `${base}/rpc`, transport: "JSONRPC" },
      { url: `${base}/rest`, transport: "HTTP+JSON" },
      { url: "agent.internal:9001", transport: "GRPC" },
    ],
    iconUrl: `${AT_AGENT}/icon.png`,
    skills: [],
    signatures: [{ protected: "e30", signature: "c2ln" }],
  };
}
