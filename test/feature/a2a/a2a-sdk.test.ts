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
): Promise<{ client: Client; agent: TestAgent; lines: KeptLines; url: string; grpcUrl: string }> {
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
  return { client: await connectA2a(url, binding), agent, lines, url, grpcUrl };
}

/** Names of the call that sends a message, where it is not that of 1.0. */
const METHODS: Readonly<Record<string, string>> = { "JSONRPC of 0.3": "message/send" };

for (const generation of ["1.0", "0.3"] as const)
  for (const binding of BINDINGS)
    test(`the official client works through the gateway: ${binding} of ${generation}`, async (t) => {
      const { client, agent, lines, url, grpcUrl } = await connect(contextOf(t), generation, binding);
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
      const card = await client.getAgentCard();
      const urls = urlsOf(card);
      assert.ok(urls.length >= 2);
      // A card that came by gRPC is pointed at the listener that it came by.
      for (const each of urls)
        assert.ok(each.startsWith(`${url}/r`) || (binding === "GRPC" && each.startsWith(grpcUrl)), each);
    });
