/**
 * Starts a gateway with GwModels for tests: two listeners that take models, and two services, which answer with what they
 * were asked.
 */
import assert from "node:assert/strict";
import { call, parseJson, type Answer } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startEcho, type Echo } from "../servers/echo.ts";
import { documents, gatewayOf, startGateway, type TestGateway } from "./gateway.ts";

const KINDS = "allowedRoutes: {kinds: [{kind: HTTPRoute}, {group: gwproxy.dev, kind: GwModel}]}";
export const MODEL_GATEWAY: string = gatewayOf([
  `{name: http, port: 8080, protocol: HTTP, ${KINDS}}`,
  `{name: second, port: 8081, protocol: HTTP, ${KINDS}}`,
]);

/** A Service that leads to a port of this machine, which a baseURL may not name. */
export function service(name: string, port: number): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec:
  ports: [{name: http, port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: ${port}, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}

/** A Service of another namespace, whose port 80 leads to a port of this machine and whose other port leads nowhere. */
export function serviceApart(namespace: string, name: string, port: number): string {
  return service(name, port)
    .replaceAll("metadata: {", `metadata: {namespace: ${namespace}, `)
    .replace("[{name: http, port: 80}]", "[{name: other, port: 81}, {name: http, port: 80}]");
}

interface ModelParts {
  /** Flow YAML of the items of parentRefs. */
  readonly parents?: string;
  /** Further members of spec in flow YAML. */
  readonly more?: string;
  /** The Service of the provider. */
  readonly to?: string;
}

export function model(name: string, { parents = "{name: gw}", more = "", to = "one" }: ModelParts = {}): string {
  const custom = `provider: custom, custom: {formats: [{type: Completions}], backendRef: {name: ${to}, port: 80}}`;
  return gwModel(name, `parentRefs: [${parents}], ${custom}${more === "" ? "" : `, ${more}`}`);
}

export function virtual(name: string, choice: string, parents = "{name: gw}"): string {
  return gwModel(name, `parentRefs: [${parents}], virtualModel: {${choice}}`);
}

export function gwModel(name: string, spec: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwModel
metadata: {name: ${name}, creationTimestamp: "2026-01-02T03:04:05Z"}
spec: {${spec}}
`;
}

/** A route to models below /team. @param rule more members of the rule @param prefix what the rule matches */
export function modelRoute(name: string, rule = "", prefix = "/team"): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}}
spec:
  parentRefs: [{name: gw}]
  rules:
    - matches: [{path: {type: PathPrefix, value: ${prefix}}}]
      ${rule}
      backendRefs: [{group: gwproxy.dev, kind: GwModel, name: "*"}]
`;
}

export interface ModelServing {
  readonly gateway: TestGateway;
  readonly one: Echo;
  readonly two: Echo;
  /** Asks for a model. */
  ask(model: string, options?: AskOptions): Promise<Answer>;
  /** Asks for a model; resolves with the service that answered and the model that it was asked for. */
  asked(model: string, options?: AskOptions): Promise<string>;
}

interface AskOptions {
  readonly path?: string;
  readonly port?: number;
  readonly headers?: Record<string, string>;
  readonly body?: object;
}

export async function serveModels(context: ProofContext, ...objects: readonly string[]): Promise<ModelServing> {
  const one = await startEcho(context, { tag: "one" });
  const two = await startEcho(context, { tag: "two" });
  const services = [service("one", one.port), service("two", two.port)];
  const gateway = await startGateway(context, documents(MODEL_GATEWAY, ...services, ...objects));
  const ask: ModelServing["ask"] = (
    name,
    { path = "/v1/chat/completions", port = 8080, headers = {}, body = {} } = {},
  ) =>
    call(gateway.url(port) + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: name, messages: [{ role: "user", content: "hi" }], ...body }),
    });
  return {
    gateway,
    one,
    two,
    ask,
    async asked(name, options) {
      const { status, headers, body } = await ask(name, options);
      assert.equal(status, 200, body);
      const sent = parseJson((parseJson(body) as { body: string }).body) as { model: string };
      return `${String(headers["x-upstream"])} ${sent.model}`;
    },
  };
}

/** Returns status and code of an error, such as "404 model_not_found". */
export async function readRefusal(answer: Promise<Answer>): Promise<string> {
  const { status, body } = await answer;
  const { error } = parseJson(body) as { error?: { code?: string; message?: string } };
  return `${status} ${error?.code}`;
}
