/** A Service with several endpoints, each a server of its own whose answers a test decides. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

export interface Replica {
  readonly name: string;
  readonly port: number;
  /** Number of requests that it received. */
  hits: number;
  /** Answers a request; by default with status 200 and its name. */
  answer: (request: IncomingMessage, response: ServerResponse) => void;
}

export async function startReplicas(context: ProofContext, ...names: readonly string[]): Promise<Replica[]> {
  return Promise.all(names.map((name) => startReplica(context, name)));
}

async function startReplica(context: ProofContext, name: string): Promise<Replica> {
  const server = createServer((request, response) => {
    replica.hits++;
    request.resume();
    request.on("end", () => replica.answer(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const replica: Replica = {
    name,
    port: (server.address() as AddressInfo).port,
    hits: 0,
    answer: (_request, response) => response.end(name),
  };
  return replica;
}

/** Returns the Service `web` on port 80, one EndpointSlice for each replica, and the route `web` to it. */
export function replicaService(replicas: readonly Replica[], spec = ""): string {
  const slices = replicas.map(({ port }, at) => endpointSlice(`web-${at}`, port, "[{addresses: [127.0.0.1]}]"));
  const parts = [
    `apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {${spec}ports: [{name: http, port: 80}]}`,
    ...slices,
    `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules: [{name: rule, backendRefs: [{name: web, port: 80}]}]`,
  ];
  return parts.join("\n---\n");
}

/**
 * Returns an EndpointSlice of the Service `web`.
 * @param endpoints flow YAML
 * @param type address type of the slice
 */
export function endpointSlice(name: string, port: number, endpoints: string, type = "IPv4"): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}, labels: {kubernetes.io/service-name: web}}
addressType: ${type}
ports: [{name: http, port: ${port}}]
endpoints: ${endpoints}`;
}

/**
 * Returns a GwPolicy on the Service.
 * @param backend flow YAML of `spec.backend`
 */
export function servicePolicy(backend: string): string {
  return `apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: web}
spec:
  targetRefs: [{group: "", kind: Service, name: web}]
  backend: ${backend}`;
}
