/**
 * A gateway with prompt guards in one of the places that can hold them, and a scripted provider of chat completions
 * behind it.
 */
import assert from "node:assert/strict";
import type { ProxyOptions } from "../../../src/proxy/proxy.ts";
import { call, parseJson, type Answer } from "../clients/http.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { startScripted, type Received } from "../servers/scripted-server.ts";
import { documents, GATEWAY, route, routePolicy, startGateway, type TestGateway } from "./gateway.ts";

interface GuardPlace {
  /** Returns "GwPolicy spec.backend.ai.promptGuard.streaming" for "streaming". */
  field(name: string): string;
  /** Returns a route and what it leads to. @param guard flow YAML of `promptGuard` */
  objects(provider: ProviderParts, guard: string): string;
}

interface ProviderParts {
  /** Flow YAML of the provider's key. */
  readonly key: string;
  readonly port: number;
}

const at = ({ key, port }: ProviderParts): string => `${key}, host: 127.0.0.1, port: ${port}`;

function backend(members: string): string {
  return `${route("ai", "ai")}
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ai}
spec: {${members}}
`;
}

/** Returns a GwModel `m` on a route of its own; its provider is behind a Service. */
function model(port: number, policies: string): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ai}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwModel, name: "*"}]}]
---
apiVersion: gwproxy.dev/v1alpha1
kind: GwModel
metadata: {name: m}
spec:
  parentRefs: [{kind: HTTPRoute, name: ai}]
  provider: custom
  custom: {formats: [{type: Completions}], backendRef: {name: one, port: 80}}
  policies: {${policies}}
---
apiVersion: v1
kind: Service
metadata: {name: one}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: one-1, labels: {kubernetes.io/service-name: one}}
addressType: IPv4
ports: [{name: http, port: ${port}, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`;
}

export const GUARD_PLACES: readonly GuardPlace[] = [
  {
    field: (name) => `GwPolicy spec.backend.ai.promptGuard.${name}`,
    objects: (provider, guard) =>
      documents(
        backend(`ai: {provider: {${at(provider)}}}`),
        routePolicy("guards", "ai", `  backend: {ai: {promptGuard: ${guard}}}`),
      ),
  },
  {
    field: (name) => `GwBackend spec.policies.ai.promptGuard.${name}`,
    objects: (provider, guard) => backend(`ai: {provider: {${at(provider)}}}, policies: {ai: {promptGuard: ${guard}}}`),
  },
  {
    field: (name) => `GwBackend spec.ai.groups[].providers[].policies.ai.promptGuard.${name}`,
    objects: (provider, guard) =>
      backend(`ai: {groups: [{providers: [{name: one, ${at(provider)}, policies: {ai: {promptGuard: ${guard}}}}]}]}`),
  },
  {
    field: (name) => `GwModel spec.policies.promptGuard.${name}`,
    objects: ({ port }, guard) => model(port, `promptGuard: ${guard}`),
  },
];

/** The answer of a provider: a body of JSON, or the pieces of a stream of events. */
type Script = Readonly<Record<string, unknown>> | readonly string[];

export function said(...contents: readonly string[]): Script {
  const choices = contents.map((content, index) => ({
    index,
    message: { role: "assistant", content },
    finish_reason: "stop",
  }));
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  return { id: "1", object: "chat.completion", created: 1, model: "m", choices, usage };
}

/** Returns the events of a stream that says each text in one chunk, and its end. */
export function streamed(...texts: readonly string[]): string[] {
  const chunk = (delta: unknown): string =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
  return [...texts.map((content) => chunk({ content })), "data: [DONE]\n\n"];
}

/** Returns the content of each choice of an answer with status 200. */
export function contentsOf({ status, body }: Answer): unknown[] {
  assert.equal(status, 200, body);
  const { choices } = parseJson(body) as {
    readonly choices: readonly { readonly message: { readonly content: unknown } }[];
  };
  return choices.map(({ message }) => message.content);
}

export interface Guarded {
  readonly gateway: TestGateway;
  /** Bodies that the provider received. */
  readonly received: readonly Received[];
  chat(body: Readonly<Record<string, unknown>>, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Sends a body of any format. */
  send(path: string, body: Readonly<Record<string, unknown>>): Promise<Answer>;
  /** Sends one message of a user. */
  ask(content: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

interface GuardedOptions {
  readonly place?: GuardPlace;
  /** Manifests of a GwBackend `chat` with a provider, in place of the guards. */
  readonly page?: string;
  /** Flow YAML of the provider's key. */
  readonly provider?: string;
  readonly answer?: Script;
  readonly objects?: readonly string[];
  readonly telemetry?: ProxyOptions["telemetry"];
  /** Address of the SPIFFE Workload API. */
  readonly spiffeEndpoint?: string;
}

/** @param guard flow YAML of `promptGuard` */
export async function startGuarded(
  context: ProofContext,
  guard: string,
  {
    place = GUARD_PLACES[0] as GuardPlace,
    provider = "llma: {}",
    answer = said("fine"),
    objects = [],
    telemetry,
    spiffeEndpoint,
    page,
  }: GuardedOptions = {},
): Promise<Guarded> {
  const server = await startScripted(context, (_request, response) => {
    const isStream = Array.isArray(answer);
    response.setHeader("x-kind", "red");
    response.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
    if (isStream) for (const piece of answer) response.write(piece);
    response.end(isStream ? "" : JSON.stringify(answer));
  });
  const { port } = server;
  const own = page?.replace("provider:\n", `provider:\n      host: 127.0.0.1\n      port: ${port}\n`);
  const served = own?.replace("name: chat", "name: ai") ?? place.objects({ key: provider, port }, guard);
  const gateway = await startGateway(
    context,
    documents(GATEWAY, ...(own === undefined ? [] : [route("ai", "ai")]), served, ...objects),
    { ...(telemetry === undefined ? {} : { telemetry }), ...(spiffeEndpoint === undefined ? {} : { spiffeEndpoint }) },
  );
  const send = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    call(`${gateway.url()}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const chat: Guarded["chat"] = (body, headers) => send("/v1/chat/completions", { model: "m", ...body }, headers);
  return {
    gateway,
    received: server.received,
    chat,
    send: (path, body) => send(path, body),
    ask: (content, headers) => chat({ messages: [{ role: "user", content }] }, headers),
  };
}

/** Returns the messages of the newest request that reached the provider. */
export function lastMessages({ received }: Guarded): unknown {
  const last = received.at(-1);
  assert.ok(last, "nothing reached the provider");
  return (last.body as { readonly messages: unknown }).messages;
}
