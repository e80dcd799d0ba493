/**
 * The official A2A client talks to the official A2A server through the gateway, in three bindings and two generations. The
 * server refuses what does not come through the gateway, so no URL that the client was given leads past it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@a2a-js/sdk/client";
import { collectKinds, connectA2a, say, urlsOf } from "../../support/clients/a2a.ts";
import { a2aBackend, agentRoute } from "../../support/gateway/agents.ts";
import { documents, gatewayOf, startGateway } from "../../support/gateway/gateway.ts";
import { keepLines, type KeptLines } from "../../support/gateway/log-lines.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startAgent, type TestAgent } from "../../support/servers/agent.ts";

const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;

/** Interfaces of gRPC are reached by a listener of their own: their path is the service, whatever the prefix of the agent. */
const GRPC_ROUTE = `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: grpc}
spec:
  parentRefs: [{name: gw, sectionName: grpc}]
  rules:
    - matches: [{method: {service: lf.a2a.v1.A2AService}}, {method: {service: a2a.v1.A2AService}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: grpc}]
`;

async function connect(
  context: ProofContext,
  generation: "1.0" | "0.3",
  binding: string,
): Promise<{ client: Client; agent: TestAgent; lines: KeptLines; url: string }> {
  const agent = await startAgent(context, generation);
  const lines = keepLines(context);
  const gateway = await startGateway(
    context,
    documents(
      gatewayOf(["{name: http, port: 8080, protocol: HTTP}", "{name: grpc, port: 8081, protocol: HTTP}"]),
      a2aBackend("team", agent.port),
      agentRoute("team", "/team", "/agents"),
      a2aBackend("grpc", agent.grpcPort),
      GRPC_ROUTE,
    ),
    { telemetry: { accessLog: lines.accessLog } },
  );
  const grpcUrl = gateway.url(8081);
  agent.setGrpcUrl(new URL(grpcUrl).host);
  const url = `${gateway.url()}/team/echo`;
  return { client: await connectA2a(url, binding), agent, lines, url };
}

/** Names of the call that sends a message, where it is not that of 1.0. */
const METHODS: Readonly<Record<string, string>> = { "JSONRPC of 0.3": "message/send" };

for (const generation of ["1.0", "0.3"] as const)
  for (const binding of BINDINGS)
    test(`the official client works through the gateway: ${binding} of ${generation}`, async (t) => {
      const { client, agent, lines, url } = await connect(contextOf(t), generation, binding);
      const sent = await client.sendMessage(say("hello"));
      assert.ok("artifacts" in sent, "the result is a task");
      const [artifact] = sent.artifacts;
      assert.deepEqual(artifact?.parts[0]?.content, { $case: "text", value: "hello" });
      assert.equal((await lines.nextFields())["a2a.method"], undefined, "the card");
      const { "a2a.method": method, "a2a.response.outcome": outcome } = await lines.nextFields();
      assert.deepEqual([method, outcome], [METHODS[`${binding} of ${generation}`] ?? "SendMessage", "success"]);
      const { id } = sent;
      assert.equal((await client.getTask({ id, tenant: "", historyLength: 1 })).id, id);
      // The agent waits until the client has the first event, so a stream that is held never ends.
      const kinds = await collectKinds(client.sendMessageStream(say("wait")), () => agent.release());
      assert.deepEqual(kinds, ["task", "artifactUpdate", "statusUpdate"]);
      await assert.rejects(client.getTask({ id: "nothing", tenant: "", historyLength: 1 }), /not found/i);
      await subscribeAgain(client, agent);
      await keepPushConfigs(client, id);
      const card = await client.getAgentCard();
      const urls = urlsOf(card);
      // A card that came by gRPC lists gRPC alone: its route knows no other. The older card came by HTTP.
      assert.equal(urls.length > 0, binding !== "GRPC" || generation === "0.3");
      assert.ok(card.supportedInterfaces.length > 0);
      for (const each of urls) assert.ok(each.startsWith(`${url}/r`), each);
    });

/** Leaves a stream while the agent works, and takes it up again. */
async function subscribeAgain(client: Client, agent: TestAgent): Promise<void> {
  let id = "";
  for await (const { payload } of client.sendMessageStream(say("wait again"))) {
    if (payload?.$case === "task") id = payload.value.id;
    break;
  }
  const kinds = await collectKinds(client.resubscribeTask({ id, tenant: "" }), () => agent.release());
  assert.deepEqual(kinds, ["task", "artifactUpdate", "statusUpdate"]);
}

/** Keeps the URL of a client, which is none of the agent, as the client gave it. */
async function keepPushConfigs(client: Client, taskId: string): Promise<void> {
  const url = "https://client.internal:9/told?task=1";
  const of = { taskId, id: "mine", tenant: "" };
  const config = { ...of, url, token: "t0ken", authentication: undefined };
  assert.equal((await client.createTaskPushNotificationConfig(config)).url, url);
  assert.equal((await client.getTaskPushNotificationConfig(of)).url, url);
  const list = { taskId, tenant: "", pageSize: 10, pageToken: "" };
  assert.deepEqual(
    (await client.listTaskPushNotificationConfig(list)).configs.map((each) => each.url),
    [url],
  );
  await client.deleteTaskPushNotificationConfig(of);
  assert.deepEqual((await client.listTaskPushNotificationConfig(list)).configs, []);
}
