/**
 * Starts a gateway with a Service or an InferencePool behind a `custom` provider, and everything that the settings of
 * policies on it may name, for tests of these settings.
 */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { TestContext } from "node:test";
import { call, parseJson, type Answer } from "../clients/http.ts";
import { contextOf } from "../proofs/prove.ts";
import { startForwardProxy } from "../servers/forward-proxy.ts";
import { startPicker, type PickerAnswer, type Question } from "../servers/picker.ts";
import { startRawUpstream, startUpstream } from "../servers/upstream.ts";
import { documents, GATEWAY, route, startGateway, type TestGateway } from "./gateway.ts";
import { inferencePool } from "./inference-pool.ts";
import { service } from "./models.ts";

/**
 * Where a setting comes from: the provider or its GwBackend (`own`), or a policy on the backend behind it, before and
 * after an edit (`first`, `second`).
 */
export const VOICES = ["own", "first", "second"] as const;
export type Voice = (typeof VOICES)[number];

export type Kind = "Service" | "InferencePool";
export const KINDS: readonly Kind[] = ["Service", "InferencePool"];
const REFS: Readonly<Record<Kind, string>> = {
  Service: '{group: "", kind: Service, name: llama, port: 80}',
  InferencePool: "{group: inference.networking.k8s.io, kind: InferencePool, name: llama}",
};
export const TARGETS: Readonly<Record<Kind, string>> = {
  Service: '{group: "", kind: Service, name: llama}',
  InferencePool: "{group: inference.networking.k8s.io, kind: InferencePool, name: llama}",
};

export interface Received {
  readonly port: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

interface ModelServers {
  readonly ports: readonly [number, number];
  readonly received: Received[];
  /** The first chunk that each connection sent. */
  readonly opened: string[];
}

const COMPLETION = {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "llama",
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

/**
 * Starts two servers that complete chats over HTTP/1.1 and end all other connections. A request chooses the `x-verdict`
 * of its answer.
 */
export async function startModelServers(t: TestContext): Promise<ModelServers> {
  const received: Received[] = [];
  const opened: string[] = [];
  const start = async (): Promise<number> => {
    const http = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      request.on("end", () => {
        const { headers } = request;
        received.push({ port, headers, body: parseJson(text) as Received["body"] });
        response.setHeader("content-type", "application/json");
        response.setHeader("x-verdict", headers["x-verdict"] ?? "");
        response.end(JSON.stringify(COMPLETION));
      });
    });
    const { port, close } = await startRawUpstream((socket) => {
      socket.once("data", (bytes) => {
        const start = bytes.toString("latin1");
        opened.push(start);
        if (!start.startsWith("POST ")) return socket.destroy();
        http.emit("connection", socket);
        return socket.unshift(bytes);
      });
    });
    t.after(close);
    return port;
  };
  return { ports: [await start(), await start()], received, opened };
}

export interface Place {
  readonly gateway: TestGateway;
  readonly servers: ModelServers;
  readonly clock: { now: number };
  /** Services that the policies of a voice name. */
  readonly guards: Readonly<Record<Voice, { readonly requests: readonly unknown[] }>>;
  readonly proxies: Readonly<Record<Voice, { readonly asked: readonly string[] }>>;
  /** What all random numbers are; 0 draws the first of several. */
  random: number;
  /** What the picker of a pool answers. */
  choose: (question: Question) => PickerAnswer;
}

const START = 1_800_000_000_000;

export function ask(
  { gateway }: Pick<Place, "gateway">,
  headers: Readonly<Record<string, string>> = {},
  name = "llama",
): Promise<Answer> {
  return call(`${gateway.url()}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: name, messages: [{ role: "user", content: "hi" }] }),
  });
}

/** Starts a gateway with everything that the sections name. */
export async function startPlace(t: TestContext, kind: Kind): Promise<Place & { readonly fixed: string }> {
  const context = contextOf(t);
  const servers = await startModelServers(t);
  const guards = await Promise.all(VOICES.map(() => startUpstream((_request, response) => void response.end())));
  for (const guard of guards) t.after(guard.close);
  const proxies = await Promise.all(VOICES.map(() => startForwardProxy(context)));
  const place = { random: 0, choose: ({ subset }: Question): PickerAnswer => ({ to: subset[0] ?? "" }) };
  const picker = await startPicker(context, (question) => place.choose(question));
  const [one, two] = servers.ports;
  const behind =
    kind === "InferencePool"
      ? inferencePool({ ports: [one, two], picker: picker.port, failureMode: "FailOpen" })
      : documents(service("llama", one), sliceOf("llama", two));
  const fixed = documents(
    GATEWAY,
    route("web", "chat"),
    behind,
    ...VOICES.flatMap((voice, at) => [
      service(`guard-${voice}`, guards[at]?.port ?? 0),
      service(`proxy-${voice}`, proxies[at]?.port ?? 0),
    ]),
  );
  const clock = { now: START };
  const gateway = await startGateway(context, documents(fixed, chat(kind)), {
    nowMs: () => clock.now,
    random: () => place.random,
  });
  const byVoice = <T>(items: readonly T[]): Readonly<Record<Voice, T>> =>
    // One item for each voice was started, in this order.
    Object.fromEntries(VOICES.map((voice, at) => [voice, items[at]])) as Record<Voice, T>;
  return Object.assign(place, {
    gateway,
    servers,
    clock,
    fixed,
    guards: byVoice(guards),
    proxies: byVoice(proxies),
  });
}

/** A further endpoint of a Service. */
function sliceOf(name: string, port: number): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-2, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: ${port}, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]`;
}

/** Returns the GwBackend in front, with what its provider and the GwBackend itself say. */
export function chat(
  kind: Kind,
  { provider = "", backend = "" }: { provider?: string; backend?: string } = {},
): string {
  const policies = (says: string): string => (says === "" ? "" : `policies: {${says}}`);
  const custom = `custom: {formats: [{type: Completions}], backendRef: ${REFS[kind]}}`;
  return `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: chat}
spec:
  ai: {groups: [{providers: [{name: own, ${custom}${provider === "" ? "" : `, ${policies(provider)}`}}]}]}
  ${policies(backend)}`;
}
