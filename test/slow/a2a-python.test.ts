/**
 * The Python SDK of A2A, client and server, through the gateway, in three bindings and two generations; its client uses the
 * agent of the JavaScript SDK too. The agents refuse what does not come through the gateway, so no URL that the client was
 * given leads past it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { collectKinds, connectA2a, say, urlsOf } from "../support/clients/a2a.ts";
import { startPython } from "../support/clients/python.ts";
import { a2aBackend, agentRoute } from "../support/gateway/agents.ts";
import { documents, gatewayOf, startGateway } from "../support/gateway/gateway.ts";
import { contextOf, type ProofContext } from "../support/proofs/prove.ts";
import { startAgent } from "../support/servers/agent.ts";

const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;

interface Agent {
  readonly name: string;
  readonly port: number;
  readonly grpcPort: number;
  setGrpcUrl(url: string): void;
}

async function startPythonAgent(context: ProofContext): Promise<Agent & { readonly ready: Promise<string> }> {
  const program = await startPython(context, "a2a_agent.py");
  const [port = 0, grpcPort = 0] = (await program.nextLine()).split(" ").map(Number);
  const ready = Promise.withResolvers<string>();
  return {
    name: "python",
    port,
    grpcPort,
    ready: ready.promise,
    setGrpcUrl: (url) => {
      program.write(url);
      ready.resolve(program.nextLine());
    },
  };
}

/** A port for the gRPC interface of each agent: its path is the service, whatever the prefix of the agent. */
const grpcRoute = (name: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: ${name}-grpc}
spec:
  parentRefs: [{name: gw, sectionName: ${name}}]
  rules:
    - backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: ${name}-grpc}]
`;

interface Agents {
  /** In the order of the listeners of their gRPC interfaces. */
  readonly agents: readonly Agent[];
  /** Without a slash at its end. */
  readonly url: string;
}

async function start(context: ProofContext): Promise<Agents> {
  const python = await startPythonAgent(context);
  const agents: Agent[] = [
    python,
    { name: "both", ...(await startAgent(context, "1.0")) },
    { name: "older", ...(await startAgent(context, "0.3")) },
  ];
  const listeners = agents.map(({ name }, at) => `{name: ${name}, port: ${8081 + at}, protocol: HTTP}`);
  const gateway = await startGateway(
    context,
    documents(
      gatewayOf(["{name: http, port: 8080, protocol: HTTP}", ...listeners]),
      ...agents.flatMap(({ name, port, grpcPort }) => [
        a2aBackend(name, port),
        agentRoute(name, `/${name}`, "/agents/echo"),
        a2aBackend(`${name}-grpc`, grpcPort),
        grpcRoute(name),
      ]),
    ),
  );
  for (const [at, agent] of agents.entries()) agent.setGrpcUrl(new URL(gateway.url(8081 + at)).host);
  await python.ready;
  return { agents, url: gateway.url() };
}

test("clients and agents of both SDKs understand each other through the gateway as they do without it", async (t) => {
  const context = contextOf(t);
  const started = await start(context);
  await usePythonClient(context, started);
  await useJavaScriptClient(started.url);
});

async function usePythonClient(context: ProofContext, { agents, url: gateway }: Agents): Promise<void> {
  const client = await startPython(context, "a2a_client.py");
  const bases = agents.map(({ port }) => `http://127.0.0.1:${port}/agents/echo`);
  for (const [path, base = "", version] of [
    ["/python/both", `${bases[0]}/both`, "1.0"],
    ["/python/older", `${bases[0]}/older`, "0.3"],
    ["/both", bases[1], "1.0"],
    ["/older", bases[2], "0.3"],
  ] as const)
    for (const binding of BINDINGS) {
      const what = `${path} in ${binding}`;
      const url = gateway + path;
      const through = (await client.ask({ url, binding, headers: {} })) as Cards;
      assert.deepEqual(through, { ...through, ...EXPECTED, joined: version === "1.0" ? true : null }, what);
      const { interfaces, extended } = through;
      expectLeadsTo(url, interfaces, what);
      // A card that came by a GRPCRoute lists gRPC alone.
      if (binding === "GRPC") continue;
      expectLeadsTo(url, extended, what);
      // The two SDKs do not understand each other everywhere; whatever works without the gateway works through it.
      const alone = await client.ask({ url: base, binding, headers: { "cdn-loop": "none" } });
      assert.deepEqual(JSON.parse(JSON.stringify(through).replaceAll(url, base)), alone, what);
      if (path.startsWith("/python")) assert.deepEqual(through, { ...through, ...PUSHED }, what);
    }
}

async function useJavaScriptClient(gateway: string): Promise<void> {
  for (const path of ["/python/both", "/python/older"])
    for (const binding of BINDINGS) {
      const what = `${path} in ${binding}`;
      const client = await connectA2a(gateway + path, binding);
      const sent = await client.sendMessage(say("hello"));
      assert.ok("artifacts" in sent, what);
      assert.deepEqual(sent.artifacts[0]?.parts[0]?.content, { $case: "text", value: "hello" }, what);
      // The agent waits until the client has the first event, so a stream that is held never ends.
      let released: Promise<unknown> | undefined;
      const kinds = await collectKinds(client.sendMessageStream(say("wait")), () => {
        released = client.sendMessage(say("release"));
      });
      await released;
      assert.deepEqual([...new Set(kinds)].sort(), ["artifactUpdate", "statusUpdate", "task"], what);
      const urls = urlsOf(await client.getAgentCard());
      // A card that came by a GRPCRoute lists gRPC alone.
      if (binding !== "GRPC") for (const url of urls) assert.ok(url.startsWith(`${gateway}${path}/`), url);
    }
}

/** What the client has to get of every agent. */
const EXPECTED = { sent: ["hello"], got: true, streamed: ["artifact_update", "status_update", "task"] };
const PUSHED = { push: "http://127.0.0.1:1/hook", pushed: "http://127.0.0.1:1/hook" };

interface Cards {
  /** Version, binding and URL of each interface. */
  readonly interfaces: readonly (readonly string[])[];
  readonly extended: readonly (readonly string[])[];
}

function expectLeadsTo(base: string, interfaces: Cards["interfaces"], what: string): void {
  assert.ok(interfaces.length >= BINDINGS.length, what);
  for (const [, binding, url = ""] of interfaces)
    assert.ok(binding === "GRPC" || url.startsWith(`${base}/`), `${what}: ${binding} at ${url}`);
}
